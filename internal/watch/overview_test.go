package watch

import (
	"fmt"
	"slices"
	"testing"

	"codeq/internal/needs"
	"codeq/wire"
)

// TestASlowTaskIsFoundInItsTurn: a board looks at the tasks in progress of a few queues a second,
// comes to all of them, and forgets what it found once the queue has none.
func TestASlowTaskIsFoundInItsTurn(t *testing.T) {
	t.Parallel()
	log := newFakeLog(1, 1)
	log.beside = needs.Beside{RunP99Ms: 1000}
	log.slow = map[string]needs.Slow{"q19": {Count: 2, SinceMs: 5}, "q3": {Count: 1, SinceMs: 7}}
	b := NewBoard(log.facts())
	set := func(slot uint32, running int64) {
		var f wire.Figures
		f[wire.FigureInProgress] = running
		b.Set(wire.SlotName{Slot: slot, Tenant: "t1", Command: fmt.Sprint("q", slot)}, &f, 0)
	}
	for slot := range uint32(20) {
		set(slot, 1)
	}
	slow := func(nowMs int64) (commands []string) {
		for _, n := range b.overviewOf(nowMs).needsFor(&rights{tenant: "t1"}) {
			commands = append(commands, fmt.Sprint(n.Command, " ", n.Reason, " ", n.Count))
		}
		slices.Sort(commands)
		return commands
	}
	nowMs := int64(1_000_000)
	for second := range 3 {
		before := log.slowLooks
		slow(nowMs)
		if looks := log.slowLooks - before; looks != slowLooks {
			t.Errorf("second %d: %d looks at tasks in progress", second, looks)
		}
		nowMs += secondMs
	}
	if got := slow(nowMs); !slices.Equal(got, []string{"q19 slow 1", "q3 slow 1"}) {
		t.Errorf("after three seconds %v", got)
	}
	set(19, 0)
	for range 4 {
		nowMs += secondMs
		slow(nowMs)
	}
	if got := slow(nowMs); !slices.Equal(got, []string{"q3 slow 1"}) {
		t.Errorf("once q19 has no task in progress %v", got)
	}
}
