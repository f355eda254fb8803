package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// Clients that do not read hold memory of the server. Over the budget of all
// the one that has taken nothing for longest loses its connection, long before its write times
// out; its tasks go on, and the others are left alone.
func TestOutboxesOfAllSessionsHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const taskBytes, budget = 60_000, 400_000
		b := newBench(t, setup{outboxBytes: budget})
		producer, _ := b.open(`{"type":"hello"}`)
		payload := strings.Repeat("x", taskBytes)
		post := func(command string, n int) {
			for range n {
				producer.say(fmt.Sprintf(`{"type":"enqueue","ref":1,"command":%q,"payload":%q}`, command, payload))
				next[*wire.OK](producer)
			}
		}
		for _, command := range []string{"a", "b", "c", "first"} {
			deaf := b.connect(false, true)
			deaf.say(fmt.Sprintf(`[{"type":"hello"},{"type":"subscribe","commands":[%q],"window":10}]`, command))
		}
		began := time.Now()
		post("first", 2)
		time.Sleep(time.Second)
		post("a", 3)
		post("b", 1)
		synctest.Wait()
		if n := b.registry.Count(); n != 5 {
			t.Errorf("%d sessions are open under the budget, want 5", n)
		}
		post("b", 1) // which is over the budget, and not by fault of b
		post("c", 1)
		synctest.Wait()
		if n := b.registry.Count(); n != 4 {
			t.Errorf("%d sessions are open, want 4", n)
		}
		if held := b.registry.unsentBytes.Load(); held != 6*(taskBytes+2) {
			t.Errorf("%d bytes are held, want those of six tasks", held)
		}
		time.Sleep(time.Second)
		healthy, _ := b.open(`{"type":"hello"}`)
		healthy.say(`{"type":"subscribe","commands":["first"],"window":10}`)
		for range 2 {
			if got := next[*wire.TaskFrame](healthy); got.Task.Attempts != 0 {
				t.Errorf("attempts %d, want 0: nothing of it had arrived", got.Task.Attempts)
			}
		}
		if passed := time.Since(began); passed >= cutAfter {
			t.Errorf("it took %v, as long as a write may", passed)
		}
		// The others are cut when their time is over, and nothing is left held.
		time.Sleep(2 * cutAfter)
		if n, held := b.registry.Count(), b.registry.unsentBytes.Load(); n != 2 || held != 0 {
			t.Errorf("in the end %d sessions hold %d bytes, want 2 and none", n, held)
		}
	})
}

// What shards send to a session that has ended is held by nobody: no client will
// ever take it.
func TestASessionThatHasEndedHoldsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newBench(t, setup{}).registry, &session{}
		r.holds(s, 100)
		r.release(s)
		r.holds(s, 50)
		if held := r.unsentBytes.Load(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}

// A client that takes something every second, however little, is never the one
// that is furthest behind, though it began to hold first and holds the most.
func TestWhoReadsSlowlyIsNotFurthestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{outboxBytes: 1000})
		deafBeside := func(other *session) *session {
			b.connect(false, true).say(`{"type":"hello"}`)
			synctest.Wait()
			for _, s := range b.registry.running() {
				if s != other {
					return s
				}
			}
			t.Fatal("there is no new session")
			return nil
		}
		slow := deafBeside(nil)
		b.registry.holds(slow, 700)
		time.Sleep(time.Second)
		stuck := deafBeside(slow)
		b.registry.holds(stuck, 100)
		for range 3 {
			time.Sleep(time.Second)
			b.registry.holds(slow, -10)
		}
		b.registry.holds(slow, 300)
		synctest.Wait()
		if left := b.registry.running(); len(left) != 1 || left[0] != slow {
			t.Errorf("%d sessions are left, want the one that reads", len(left))
		}
		if held := b.registry.unsentBytes.Load(); held != 970 {
			t.Errorf("%d bytes are held when the stuck one has gone, want 970", held)
		}
		// The next one that is over the budget is found as well.
		b.registry.holds(slow, 100)
		synctest.Wait()
		if n := b.registry.Count(); n != 0 {
			t.Errorf("%d sessions are left, want none: the last one holds more than there may be", n)
		}
		again := deafBeside(nil)
		b.registry.holds(again, 70)
		b.registry.release(again)
		b.registry.holds(again, 10)
		if held := b.registry.unsentBytes.Load(); held != 0 {
			t.Errorf("%d bytes are held by nobody", held)
		}
	})
}

// The session that was chosen to be cut may end by itself at that moment, and what is
// over the budget may be of none that runs: the next time one is cut all the same.
func TestTheBudgetGoesOnWhenTheChosenSessionHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{outboxBytes: 1000})
		b.registry.holds(&session{}, 1001)
		b.registry.unsentBytes.Store(0)
		b.connect(false, true).say(`{"type":"hello"}`)
		synctest.Wait()
		chosen := b.registry.running()[0]
		b.registry.holds(chosen, 700)
		chosen.holding.mu.Lock()
		chosen.holding.over = true // as between the choice and the cut
		chosen.holding.mu.Unlock()
		b.registry.relieve()
		if chosen.holding.relieved {
			t.Error("a session that has ended is to be cut")
		}
		b.registry.release(chosen)
		b.connect(false, true).say(`{"type":"hello"}`)
		synctest.Wait()
		for _, s := range b.registry.running() {
			if s != chosen {
				b.registry.holds(s, 1001)
			}
		}
		synctest.Wait()
		if n, held := b.registry.Count(), b.registry.unsentBytes.Load(); n != 1 || held != 0 {
			t.Errorf("%d sessions hold %d bytes, want the one that was chosen first and none", n, held)
		}
	})
}
