package shard

import (
	"math/rand/v2"
	"strings"
	"testing"

	"codeq/internal/credit"
	"codeq/lease"
	"codeq/wire"
)

// waitedFor is a window for which another shard waits, or not; of two it should have
// half.
type waitedFor struct {
	*credit.Window
	waits bool
}

func (w *waitedFor) OthersWait(int) bool { return w.waits }

func (w *waitedFor) Portion(int) int { return 4 }

// While another shard waits a few units are kept in a row and the next goes round;
// then, and when nobody waits, the row begins anew.
func TestUnitsAreKeptInRows(t *testing.T) {
	const inRow, share = 3, 4
	sink, random := &scriptSink{}, rand.New(rand.NewPCG(1, 1))
	seat := newScriptSeat(Seat{ID: wire.SessionID{1}, Sink: sink}, func(Message) {})
	window := &waitedFor{Window: seat.Window}
	seat.Credit = window
	seat.SetWindow(2 * share)
	mb := &member{seat: seat.Seat}
	s := &Shard{
		limits: Limits{KeptInRow: inRow}, leases: lease.New(), members: map[wire.SessionID]*member{seat.ID: mb},
	}
	history := ""
	for range 2000 {
		waits := random.IntN(6) > 0
		window.waits = waits
		mb.kept = random.IntN(share + 1)
		var want bool
		switch {
		case !waits:
			want = true
			history += "."
		case strings.HasSuffix(history, "kkk"):
			history += "."
		case mb.kept < share:
			want = true
			history += "k"
		}
		answer := &Completed{}
		s.keepUnit(&Result{Asker: Asker{Sink: sink}}, seat.ID, answer)
		if answer.Kept != want {
			t.Fatalf("kept: %t, want %t, with %d in hand, another waits: %t, after %s", answer.Kept, want, mb.kept, waits, history)
		}
	}
}
