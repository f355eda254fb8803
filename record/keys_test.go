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
func oneOfEach(name string) []Key {
	id := wire.TaskID{0: 1, 15: 0xff}
	const q = 1<<32 - 1
	var all []Key
	for f := FamilyTask; f <= FamilyLimited; f++ {
		p := Key{Shard: 31, Family: f}
		switch f {
		case FamilyTask, FamilyPayload, FamilyResult, FamilyHistory:
			p.ID = id
		case FamilyIdempotency:
			p.Queue, p.Name = q, name
		case FamilyPending:
			p.Queue, p.ID, p.Priority, p.Seq = q, id, 7, 1<<40
		case FamilyInProgress:
			p.Queue, p.ID = q, id
		case FamilyDelayed, FamilyExpiring, FamilyDead, FamilyDone:
			p.Queue, p.ID, p.AtMs = q, id, 1_700_000_000_000
		case FamilyCounters, FamilySettings, FamilyNames:
			p.Queue = q
		case FamilyBad:
			p.Name = "\x01x"
		case FamilyLimited:
			p.Queue, p.ID, p.Name, p.Priority, p.Seq = q, id, name, 7, 1<<40
		case FamilyLabels:
			p.Queue, p.ID, p.Tenant, p.Name = q, id, name, name+"=v"
		case FamilyNamed:
			p.Tenant, p.Kind, p.Name = name, KindLimits, name
		}
		all = append(all, p)
	}
	return all
}

func TestKeysKeepTheirForm(t *testing.T) {
	var b strings.Builder
	for _, p := range oneOfEach("k/1%\x00é") {
		fmt.Fprintf(&b, "%x\n\t%s\n", p.AppendTo(nil), DescribeKey(p.AppendTo(nil), QueueKey{Command: "c", Tenant: "t"}))
	}
	fmt.Fprintf(&b, "%q\n", CreationKey)
	golden(t, "keys.txt", b.String())
}

func TestKeysComeBackWhole(t *testing.T) {
	for _, name := range []string{"a", "", "/", "%", "a.b:c_d-e", "\x00\xff"} {
		for _, want := range oneOfEach(name) {
			got, err := ParseKey(want.AppendTo(nil))
			if err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
		}
	}
}

func TestKeysOfASpanHaveTheOrderOfTheirFamilies(t *testing.T) {
	var keys [][]byte
	for _, p := range oneOfEach("k") {
		if p.Family == FamilyPending {
			continue
		}
		keys = append(keys, p.AppendTo(nil))
		if p.Family != FamilyIdempotency && p.Family != FamilyBad && p.Family < FamilyLabels && len(keys[len(keys)-1]) > 32 {
			t.Errorf("a key of %v has %d bytes", p.Family, len(keys[len(keys)-1]))
		}
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Error("families are out of order")
	}
}

func TestOnlyTheOneSpellingOfAKeyIsAccepted(t *testing.T) {
	span := string(AppendSpan(nil, 3))
	id := strings.Repeat("i", idBytes)
	queue := func(f Family, rest string) string {
		return span + string(AppendQueue(nil, 7, f)) + rest
	}
	for _, key := range []string{
		"", "c", span, CreationKey, "\x00\x20\x01" + id, span + "\x00" + id, span + "\x13" + id, span + "\x11" + id, span + "\x11t/k/" + id, span + "\x11t/k/\x00\x00\x00\x00" + id, span + "\x11t\x00\x00\x00\x01" + id,
		span + "\x11t/%61/\x00\x00\x00\x01" + id, span + "\x11t/k/\x00\x00\x00\x01" + id + "x", span + "\x01", span + "\x01" + id + "x",
		span + "\x01" + id[1:], span + string(byte(FamilyMarks)) + "x", span + string(byte(FamilyCounters)), span + string(byte(FamilyCounters)) + "\x00\x00\x00\x00",
		span + "\x12t/k", span + "\x12t/k/", span + "\x12t/k/n/x", span + "\x12t/k/%61/", span + "\x12",
		queue(FamilyCounters, "x"), queue(FamilySettings, "x"), queue(FamilyNames, "x"), queue(FamilyIdempotency, ""), queue(FamilyIdempotency, "a"),
		queue(FamilyIdempotency, "a/b"), queue(FamilyIdempotency, "a/b/"), queue(FamilyIdempotency, "a%2e/"), queue(FamilyIdempotency, "a%41/"),
		queue(FamilyIdempotency, "a%2/"), queue(FamilyIdempotency, "a%/"), queue(FamilyIdempotency, "a b/"), queue(FamilyIdempotency, "a%2a/"),
		queue(FamilyPending, ""), queue(FamilyPending, "\x0a12345678"+id), queue(FamilyPending, "\x001234567"+id),
		queue(FamilyDelayed, "\x8012345678"+id), queue(FamilyDelayed, "\x80\x00\x00\x00\x00\x00\x00\x00"+id), queue(FamilyInProgress, id+"x"),
		queue(FamilyDone, "\x0012345678"[:8]+id+id), queue(FamilyDone, "\x0012345678"[:8]+id+"x"), queue(FamilyDone, "\x0012345678"[:8]+"\xff"+id[1:]+id),
		queue(FamilyDead, "\x0012345678"[:8]+id+"\xff"+id[1:]), queue(FamilyDone, "\x0012345678"[:8]+rising(MaxTogether+1)),
	} {
		if p, err := ParseKey([]byte(key)); err == nil {
			t.Errorf("%q was taken for %+v", key, p)
		}
	}
}

// rising are so many ids, one behind the other.
func rising(n int) (ids string) {
	for i := range n {
		id := wire.TaskID{byte(i)}
		ids += string(id[:])
	}
	return ids
}

func TestDoneKeysNameUpToSoManyTasks(t *testing.T) {
	ids := make([]wire.TaskID, MaxTogether)
	for i := range ids {
		ids[i] = wire.TaskID{byte(i)}
	}
	for n := 1; n <= len(ids); n++ {
		key := AppendDoneKey(AppendSpan(nil, 3), 7, 9, ids[:n])
		p, err := ParseKey(key)
		if err != nil || p.Tasks() != n || !slices.Equal(p.AppendTasks(nil), ids[:n]) || p.AtMs != 9 || !bytes.Equal(p.AppendTo(nil), key) {
			t.Errorf("%d ids: %+v, %v", n, p, err)
		}
	}
}

func TestPendingKeysSortByPriorityThenSequence(t *testing.T) {
	var keys [][]byte
	for priority := wire.MaxPriority; priority >= 0; priority-- {
		for _, seq := range []uint64{0, 1, 255, 256, 1 << 63, 1<<64 - 1} {
			keys = append(keys, AppendPendingKey(AppendSpan(nil, 0), 7, priority, PendingKey{Seq: seq}))
		}
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Error("pending keys are out of order")
	}
}

func TestNumbersThatHaveNoKeyPanic(t *testing.T) {
	mustPanic(t, "a negative time", func() { AppendTimedKey(nil, 7, FamilyDelayed, TimedKey{AtMs: -1}) })
	mustPanic(t, "priority 10", func() { AppendPriority(nil, 7, 10) })
	mustPanic(t, "priority -1", func() { AppendPriority(nil, 7, -1) })
	mustPanic(t, "shard 32", func() { AppendSpan(nil, MaxShards) })
}

func FuzzNamesNeverMeet(f *testing.F) {
	f.Add("abc", "abcd")
	f.Add("ab/cd", "ab")
	f.Add("a%2Fb", "a/b")
	f.Add("a\x00\xff", "a\x00")
	f.Fuzz(func(t *testing.T, name1, name2 string) {
		mustRoundTrip(t, Key{Family: FamilyIdempotency, Queue: 7, Name: name1})
		if name1 != name2 {
			mustNotMeet(t, AppendIdempotencyKey(nil, 7, name1), AppendIdempotencyKey(nil, 7, name2))
			mustNotMeet(t, AppendLabel(nil, name1, name2), AppendLabel(nil, name2, name1))
			mustNotMeet(t, AppendNamedKey(nil, NamedKey{name1, "k", name2}), AppendNamedKey(nil, NamedKey{name2, "k", name1}))
			mustNotMeet(t, AppendLabel(nil, "t", name1), AppendLabel(nil, "t", name2))
		}
		mustRoundTrip(t, Key{Family: FamilyNamed, Tenant: name1, Kind: KindLimits, Name: name2})
		mustRoundTrip(t, Key{Family: FamilyLabels, Queue: 7, ID: wire.TaskID{1: '/'}, Tenant: name1, Name: name2})
		q := QueueKey{Command: "c" + name1, Tenant: name2}
		if got, err := ParseNames(AppendNames(nil, q)); err != nil || got != q {
			t.Fatalf("got %+v, %v, want %+v", got, err, q)
		}
	})
}

// FuzzParseNames reads whatever is the name of a queue.
func FuzzParseNames(f *testing.F) {
	f.Add(AppendNames(nil, QueueKey{Command: "c", Tenant: "t"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := ParseNames(data)
		if err == nil && !bytes.HasPrefix(data, AppendNames(nil, q)) {
			t.Fatalf("%x was taken for %+v", data, q)
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
	for _, p := range oneOfEach("a/b") {
		f.Add(p.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		p, err := ParseKey(key)
		if err == nil && !bytes.Equal(p.AppendTo(nil), key) {
			t.Fatalf("%q was taken for %+v", key, p)
		}
		if NameForLog(key, QueueKey{}) == "" {
			t.Fatal("no words for a key")
		}
	})
}

func TestWordsOfAKeyDoNotTellAnIdempotencyKey(t *testing.T) {
	key := AppendIdempotencyKey(AppendSpan(nil, 2), 7, "secret")
	for words, want := range map[string]string{
		NameForLog(key, QueueKey{Command: "c", Tenant: "t"}): `idempotency key in queue "c" of tenant "t"`,
		NameForLog(key, QueueKey{}):                          "idempotency key in queue number 7 of shard 2",
	} {
		if words != want {
			t.Errorf("got %s, want %s", words, want)
		}
	}
}
