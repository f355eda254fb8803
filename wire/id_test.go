package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestUUIDv7HasTimeVersionVariantAndChance(t *testing.T) {
	all := [10]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	cases := []struct {
		unixMs int64
		random [10]byte
		want   string
	}{
		{0, [10]byte{}, "00000000-0000-7000-8000-000000000000"},
		{0x0123456789ab, all, "01234567-89ab-7fff-bfff-ffffffffffff"},
		{sampleTimeMs, [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "019b76da-a87b-7102-8304-05060708090a"},
		{1<<48 - 1, [10]byte{0x0f, 0, 0x3f}, "ffffffff-ffff-7f00-bf00-000000000000"},
	}
	for _, c := range cases {
		if got := TaskID(NewUUIDv7(c.unixMs, c.random)).String(); got != c.want {
			t.Errorf("%d with %v is %s, want %s", c.unixMs, c.random, got, c.want)
		}
	}
}

func TestUUIDv7OrdersByTime(t *testing.T) {
	early := TaskID(NewUUIDv7(sampleTimeMs, [10]byte{0: 0xff, 9: 0xff})).String()
	late := TaskID(NewUUIDv7(sampleTimeMs+1, [10]byte{})).String()
	if early >= late {
		t.Errorf("%s does not sort before %s", early, late)
	}
}

func TestOnlyTheCanonicalTextIsAnID(t *testing.T) {
	const text = "019b76da-a87b-7102-8304-05060708090a"
	id, ok := ParseTaskID(text)
	if !ok || id.String() != text || string(id.AppendTo([]byte("x"))) != "x"+text {
		t.Errorf("%s is read as %s (%t)", text, id, ok)
	}
	if session, ok := ParseSessionID(text); !ok || session.String() != text || session.IsZero() {
		t.Errorf("session %s is read as %s (%t)", text, session, ok)
	}
	bad := []string{
		"", text[:35], text + "0", strings.ToUpper(text), "{" + text[1:35] + "}", " " + text[1:],
		strings.ReplaceAll(text, "-", ""), "urn:uuid:" + text, "019b76da+a87b-7102-8304-05060708090a",
		"019b76daa-87b-7102-8304-05060708090a", "019b76da-a87b-7102-8304-05060708090g",
		"019b76da-a87b-7102-8304-0506070809\x000", "019b76da-a87b-7102-8304-050607080é",
	}
	for _, text := range bad {
		if _, ok := ParseTaskID(text); ok {
			t.Errorf("%q is a task id", text)
		}
		if _, ok := ParseSessionID(text); ok {
			t.Errorf("%q is a session id", text)
		}
	}
	if !(TaskID{}).IsZero() || id.IsZero() {
		t.Error("IsZero is wrong")
	}
}

func TestOnlyLowerCaseHexIsAToken(t *testing.T) {
	const text = "00112233445566778899aabbccddeeff"
	token, ok := ParseToken(text)
	if !ok || token.String() != text || string(token.AppendTo([]byte("x"))) != "x"+text || token.IsZero() {
		t.Errorf("%s is read as %s (%t)", text, token, ok)
	}
	for _, text := range []string{"", text[:31], text + "0", strings.ToUpper(text), text[:31] + "g", text[:30] + "é"} {
		if _, ok := ParseToken(text); ok {
			t.Errorf("%q is a token", text)
		}
	}
}

// TestShardsNeverMove: these values decide where bytes lie on disk. A change
// here loses every task of every existing data directory.
func TestShardsNeverMove(t *testing.T) {
	tasks := []struct {
		id   string
		want [4]int // of 1, 4, 7 and 32 shards
	}{
		{"00000000-0000-0000-0000-000000000000", [4]int{0, 1, 0, 17}},
		{"019b76da-a87b-7102-8304-05060708090a", [4]int{0, 2, 5, 18}},
		{"ffffffff-ffff-7fff-bfff-ffffffffffff", [4]int{0, 0, 4, 24}},
	}
	for _, c := range tasks {
		id, ok := ParseTaskID(c.id)
		if !ok {
			t.Fatal(c.id)
		}
		for i, shards := range []int{1, 4, 7, 32} {
			if got := ShardOfTask(id, shards); got != c.want[i] {
				t.Errorf("%s of %d shards is in %d, want %d", c.id, shards, got, c.want[i])
			}
		}
	}
	queues := []struct {
		tenant, command string
		want            [4]int
	}{
		{"default", "sha256", [4]int{0, 1, 4, 21}},
		{"d", "efault", [4]int{0, 0, 0, 0}},
		{"t", "\x00\xff é", [4]int{0, 0, 6, 4}},
	}
	for _, c := range queues {
		for i, shards := range []int{1, 4, 7, 32} {
			if got := ShardOfQueue(c.tenant, c.command, shards); got != c.want[i] {
				t.Errorf("%q %q of %d shards is at home in %d, want %d", c.tenant, c.command, shards, got, c.want[i])
			}
		}
	}
}

// An id that was moved is in the shard that was asked for, keeps its time, version
// and variant, and most of its chance.
func TestU02IDMovesToTheShardThatIsAskedFor(t *testing.T) {
	for shards := 1; shards <= 64; shards++ {
		for n := range 8 * shards {
			drawn := TaskID(NewUUIDv7(sampleTimeMs, [10]byte{3: byte(n), 7: byte(shards), 9: byte(255 - n)}))
			moved := drawn.MovedTo(n%shards, shards)
			if got := ShardOfTask(moved, shards); got != n%shards || [13]byte(drawn[:]) != [13]byte(moved[:]) || moved[15] != drawn[15] {
				t.Fatalf("%v moved to shard %d of %d is %v in shard %d", drawn, n%shards, shards, moved, got)
			}
			if again := moved.MovedTo(n%shards, shards); again != moved {
				t.Fatalf("%v lies where it should and becomes %v", moved, again)
			}
		}
	}
}

func TestShardsAreUsedEvenly(t *testing.T) {
	const shards, tasks = 4, 40_000
	var counts [shards]int
	for n := range tasks {
		id := TaskID(NewUUIDv7(sampleTimeMs, [10]byte{7: byte(n >> 16), 8: byte(n >> 8), 9: byte(n)}))
		counts[ShardOfTask(id, shards)]++
	}
	for shard, count := range counts {
		if count < tasks/shards*9/10 || count > tasks/shards*11/10 {
			t.Errorf("shard %d has %d of %d tasks", shard, count, tasks)
		}
	}
}

func TestANewTaskNamesCellZeroWhereverItIsMoved(t *testing.T) {
	for n := range 1000 {
		drawn := NewTaskID(1_700_000_000_000, [10]byte{byte(n), byte(n >> 8), 9: 0xff})
		if drawn[15] != 0 {
			t.Fatalf("%v names a cell", drawn)
		}
		for _, shards := range []int{1, 4, 32} {
			moved := drawn.MovedTo(n%shards, shards)
			if moved[15] != 0 || ShardOfTask(moved, shards) != n%shards || !bytes.Equal(moved[:13], drawn[:13]) {
				t.Errorf("%v became %v for shard %d of %d", drawn, moved, n%shards, shards)
			}
		}
	}
}

func BenchmarkMovedTo(b *testing.B) {
	for _, shards := range []int{1, 4, 64} {
		b.Run(fmt.Sprint(shards), func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				id := NewTaskID(1_700_000_000_000, [10]byte{byte(n), byte(n >> 8), byte(n >> 16), 7: byte(n)})
				_ = id.MovedTo(n%shards, shards)
			}
		})
	}
}
