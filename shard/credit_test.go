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

// While another shard waits a few credits are kept in a row and the next goes round;
// then, and when nobody waits, the row begins anew.
func TestCreditsAreReusedInRows(t *testing.T) {
	const inRow, share = 3, 4
	sink, random := &scriptSink{}, rand.New(rand.NewPCG(1, 1))
	consumer := newScriptConsumer(Consumer{ID: wire.SessionID{1}, Sink: sink}, func(Message) {})
	window := &waitedFor{Window: consumer.Window}
	consumer.Credit = window
	consumer.SetWindow(2 * share)
	sub := &subscriber{consumer: consumer.Consumer}
	s := &Shard{
		limits: Limits{ReusedInRow: inRow}, leases: lease.New(), byConsumer: map[wire.SessionID]*subscriber{consumer.ID: sub},
	}
	history := ""
	for range 2000 {
		waits := random.IntN(6) > 0
		window.waits = waits
		sub.reused = random.IntN(share + 1)
		var want bool
		switch {
		case !waits:
			want = true
			history += "."
		case strings.HasSuffix(history, "kkk"):
			history += "."
		case sub.reused < share:
			want = true
			history += "k"
		}
		answer := &Completed{}
		s.reuseCredit(&Result{Holder: Holder{Asker: Asker{Sink: sink}}}, consumer.ID, answer)
		if answer.CreditReused != want {
			t.Fatalf("kept: %t, want %t, with %d in hand, another waits: %t, after %s", answer.CreditReused, want, sub.reused, waits, history)
		}
	}
}
