package record

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeq/wire"
)

// oneOfEach is a key of every family.
func oneOfEach(q QueueKey) []Key {
	id := wire.TaskID{0: 1, 15: 0xff}
	var all []Key
	for f := FamilyTask; f <= FamilyBad; f++ {
		p := Key{Shard: 31, Family: f}
		switch f {
		case FamilyTask, FamilyPayload, FamilyResult, FamilyHistory:
			p.ID = id
		case FamilyIdempotency:
			p.Queue, p.Name = q, "k/1"
		case FamilyPending:
			p.Queue, p.ID, p.Priority, p.Seq = q, id, 7, 1<<40
		case FamilyInProgress:
			p.Queue, p.ID = q, id
		case FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone:
			p.Queue, p.ID, p.AtMs = q, id, 1_700_000_000_000
		case FamilyCounters, FamilySettings:
			p.Queue = q
		case FamilyBad:
			p.Name = "tasks/x"
		}
		all = append(all, p)
	}
	return all
}

func TestKeysKeepTheirForm(t *testing.T) {
	var b strings.Builder
	for _, p := range oneOfEach(QueueKey{Command: "render:page", Tenant: "acme/eu%\x00é"}) {
		fmt.Fprintf(&b, "%q\n", p.AppendTo(nil))
	}
	fmt.Fprintf(&b, "%q\n", CreationKey)
	golden(t, "keys.txt", b.String())
}

func TestKeysComeBackWhole(t *testing.T) {
	for _, q := range []QueueKey{{"a", "b"}, {"", ""}, {"/", "%"}, {"a.b:c_d-e", "\x00\xff"}} {
		for _, want := range oneOfEach(q) {
			got, err := ParseKey(want.AppendTo(nil))
			if err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
		}
	}
}

func TestOnlyTheOneSpellingOfAKeyIsAccepted(t *testing.T) {
	span := string(AppendSpan(nil, 3))
	id := strings.Repeat("i", idBytes)
	for _, key := range []string{
		"", "codeq", "codeq/", "other/\x00\x03/tasks/" + id, "codeq/\x00\x20/tasks/" + id, "codeq/\x00\x03-tasks/" + id,
		span, span + "tasks/", span + "tasks/" + id + "x", span + "tasks/" + id[1:], span + "meta/marksx", span + "meta/",
		span + "stats/a/b", span + "stats/a/b/c/", span + "stats/a%2e/b/", span + "stats/a%41/b/", span + "stats/a%2/b/",
		span + "stats/a%/b/", span + "stats/a b/b/", span + "stats/a%2a/b/", span + "idempo/a/b/c", span + "idempo/a/b/c/d",
		span + "q/a/b/", span + "q/a/b/pending/", span + "q/a/b/pending/\x0a12345678" + id, span + "q/a/b/pending/\x001234567" + id,
		span + "q/a/b/delayed/\x8012345678" + id, span + "q/a/b/delayed/\x80\x00\x00\x00\x00\x00\x00\x00" + id,
		span + "q/a/b/inprog/" + id + "x", span + "q/a/b/lost/" + id, span + "settings/a/b",
	} {
		if p, err := ParseKey([]byte(key)); err == nil {
			t.Errorf("%q was taken for %+v", key, p)
		}
	}
}

func TestPendingKeysSortByPriorityThenSequence(t *testing.T) {
	q := QueueKey{"c", "t"}
	var keys [][]byte
	for priority := wire.MaxPriority; priority >= 0; priority-- {
		for _, seq := range []uint64{0, 1, 255, 256, 1 << 63, 1<<64 - 1} {
			keys = append(keys, AppendPendingKey(AppendSpan(nil, 0), q, priority, PendingKey{Seq: seq}))
		}
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Error("pending keys are out of order")
	}
}

func TestNumbersThatHaveNoKeyPanic(t *testing.T) {
	q := QueueKey{"c", "t"}
	mustPanic(t, "a negative time", func() { AppendTimedKey(nil, q, FamilyDelayed, TimedKey{AtMs: -1}) })
	mustPanic(t, "priority 10", func() { AppendPriority(nil, q, 10) })
	mustPanic(t, "priority -1", func() { AppendPriority(nil, q, -1) })
	mustPanic(t, "shard 32", func() { AppendSpan(nil, MaxShards) })
}

// nameTriple cuts text into command, tenant and key at two places.
func nameTriple(text string, cuts uint16) (q QueueKey, key string) {
	first := int(cuts>>8) % (len(text) + 1)
	second := int(cuts&0xff) % (len(text) + 1)
	if first > second {
		first, second = second, first
	}
	return QueueKey{text[:first], text[first:second]}, text[second:]
}

func FuzzNamesNeverMeet(f *testing.F) {
	f.Add("abc", "abcd", uint16(0x0102), uint16(0x0102))
	f.Add("ab/cd", "a/bcd", uint16(0x0104), uint16(0x0304))
	f.Add("a%2Fb", "a/b", uint16(0x0405), uint16(0x0203))
	f.Add("a\x00\xff", "a\x00\xff", uint16(0x0202), uint16(0x0102))
	f.Fuzz(func(t *testing.T, text1, text2 string, cuts1, cuts2 uint16) {
		q1, k1 := nameTriple(text1, cuts1)
		q2, k2 := nameTriple(text2, cuts2)
		span := AppendSpan(nil, 0)
		mustRoundTrip(t, Key{Family: FamilyIdempotency, Queue: q1, Name: k1})
		mustRoundTrip(t, Key{Family: FamilyCounters, Queue: q1})
		if q1 != q2 || k1 != k2 {
			mustNotMeet(t, AppendIdempotencyKey(span, q1, k1), AppendIdempotencyKey(span, q2, k2))
		}
		if q1 != q2 {
			mustNotMeet(t, AppendCountersKey(span, q1), AppendCountersKey(span, q2))
			mustNotMeet(t, AppendQueue(span, q1, FamilyPending), AppendQueue(span, q2, FamilyPending))
			mustNotMeet(t, AppendIdempotencyPrefix(span, q1), AppendIdempotencyPrefix(span, q2))
		}
	})
}

func mustRoundTrip(t *testing.T, want Key) {
	t.Helper()
	got, err := ParseKey(want.AppendTo(nil))
	if err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
}

func mustNotMeet(t *testing.T, a, b []byte) {
	t.Helper()
	if bytes.HasPrefix(a, b) || bytes.HasPrefix(b, a) {
		t.Fatalf("%q and %q meet", a, b)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, p := range oneOfEach(QueueKey{"a/b", "c"}) {
		f.Add(p.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		p, err := ParseKey(key)
		if err == nil && !bytes.Equal(p.AppendTo(nil), key) {
			t.Fatalf("%q was taken for %+v", key, p)
		}
		if NameForLog(key) == "" {
			t.Fatal("no words for a key")
		}
	})
}

func TestWordsOfAKeyDoNotTellAnIdempotencyKey(t *testing.T) {
	key := AppendIdempotencyKey(AppendSpan(nil, 0), QueueKey{"c", "t"}, "secret")
	if words := NameForLog(key); strings.Contains(words, "secret") || !strings.Contains(words, `"c"`) {
		t.Errorf("got %s", words)
	}
}
