package sim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
)

// chance draws everything that a run decides. Each step has a stream of its own.
type chance struct {
	seed uint64
	pcg  *rand.PCG
	*rand.Rand
}

func newChance(seed uint64) *chance {
	pcg := rand.NewPCG(seed, 0)
	return &chance{seed: seed, pcg: pcg, Rand: rand.New(pcg)}
}

// begin starts the stream of a step.
func (c *chance) begin(step int) {
	x := (uint64(step) + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	c.pcg.Seed(c.seed, x^x>>27)
}

// oneIn is true once in n times.
func (c *chance) oneIn(n int) bool { return c.IntN(n) == 0 }

// pick chooses one of some; it must not be empty.
func pick[T any](c *chance, some []T) T { return some[c.IntN(len(some))] }

// bytesFor is a source of bytes for one life of the process.
func (c *chance) bytesFor(life int) *rand.ChaCha8 {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(c.seed >> (8 * i))
		seed[8+i] = byte(life >> (8 * i))
	}
	return rand.NewChaCha8(seed)
}

// trace is what two runs of one seed must share: a hash over everything that
// happened. It keeps the words too when it is asked to.
type trace struct {
	sum       uint64
	recording bool
	lines     []string
}

func (t *trace) word(w uint64) { t.sum = (t.sum ^ w) * 0x100000001b3 }

func (t *trace) text(b []byte) {
	for len(b) >= 8 {
		t.word(uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56)
		b = b[8:]
	}
	for _, c := range b {
		t.word(uint64(c))
	}
}

// say adds a line to the story.
func (t *trace) say(format string, args ...any) {
	if t.recording {
		t.lines = append(t.lines, padding.ReplaceAllString(fmt.Sprintf(format, args...), "x…"))
	}
}

// padding is what makes payloads long and tells nobody anything.
var padding = regexp.MustCompile("x{4,}")
