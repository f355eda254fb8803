package loadtest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-rewrite makes it anew), got:\n%s", file, got)
	}
}

// idOf is the id of a task in these tests: its number, so that no two agree.
func idOf(n uint64) wire.TaskID {
	id := wire.TaskID{8: 1}
	for i := range 7 {
		id[15-i] = byte(n >> (8 * i))
	}
	return id
}

// crooked is a target that answers after a fixed time and may cheat.
type crooked struct {
	answerAfter time.Duration
	// cheat is called for each task before it is worked on; it may do
	// otherwise and says whether the honest way is still to be gone.
	cheat func(w *Tally, n uint64) bool
	// refuse says which tasks are not taken on.
	refuse func(n uint64) *wire.Error

	workload *Workload
	fail     func(error)
	mu       sync.Mutex // over both tallies
	acks     *Tally
	work     *Tally
	open     sync.WaitGroup
}

func (c *crooked) Open(_ context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Poster, error) {
	c.workload, c.fail, c.acks, c.work = w, fail, newTally(), newTally()
	lines := make([]Poster, w.Sessions)
	for i := range lines {
		lines[i] = c
	}
	return lines, nil
}

func (c *crooked) Work(context.Context) error { return nil }

func (c *crooked) Durability() string { return "none" }

func (c *crooked) Close() error {
	c.open.Wait()
	return nil
}

func (c *crooked) Post(first uint64, count int) error {
	c.open.Go(func() {
		time.Sleep(c.answerAfter) // in the bubble of the test, where no time passes
		c.mu.Lock()
		defer c.mu.Unlock()
		c.acks.Begin()
		c.work.Begin()
		for n := first; n < first+uint64(count); n++ {
			c.one(n)
		}
		c.work.End()
		c.acks.End()
	})
	return nil
}

func (c *crooked) one(n uint64) {
	if c.refuse != nil {
		if refusal := c.refuse(n); refusal != nil {
			c.acks.Refused(n, refusal)
			return
		}
	}
	c.acks.Acked(n, idOf(n))
	if c.cheat != nil && !c.cheat(c.work, n) {
		return
	}
	honest(c.workload, c.work, n)
}

// honest delivers and completes a task as it should be.
func honest(w *Workload, t *Tally, n uint64) {
	if got, ok := t.Delivered(idOf(n), w.Payload(n)); !ok || got != n {
		panic("an honest delivery was not understood")
	}
	t.Completed(n)
}
