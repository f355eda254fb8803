package session

import (
	"math/rand/v2"
	"strings"
	"testing"

	"codeq/internal/auth"
)

// pinged is what somebody writes down who watches the regular pings of a session:
// for each what came of it, M for missed, . for not, ? for what nobody can say yet,
// and . too when the server reads on after it stood still.
type pinged struct {
	outcomes []byte
	// sent is a ping that has none yet, heard what came after it.
	sent, heard, late bool
}

func (p *pinged) comes(of byte) { p.outcomes = append(p.outcomes, of) }

// look is what the next ping finds of the one before.
func (p *pinged) look(stalled, full bool, at *Timer) {
	switch {
	case stalled || full || at.Ping == PingMoves:
		p.comes('.')
	case at.Ping == PingStuck:
		p.comes('M')
	case at.Ping == PingWaits || p.late || at.Hears:
		p.comes('?')
	case p.sent && !p.heard:
		p.comes('M')
	default:
		p.comes('.')
	}
	p.sent, p.heard, p.late = true, false, at.Ping != PingArrived
}

// isOver says that two pings were missed with none between them that was not.
func (p *pinged) isOver() bool {
	return strings.HasSuffix(strings.ReplaceAll(string(p.outcomes), "?", ""), "MM")
}

// A session ends with its second missed ping, and only then: whatever speaks for the
// client in between, or for a server that did not hear it, begins the count anew.
func TestSessionsEndWithTheSecondMissedPing(t *testing.T) {
	ends, forgiven := 0, 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		nowMs := int64(scriptEpochMs)
		c := NewConversation(Facts{Router: &testRouter{shards: 1}}, nowMs)
		c.Step(nowMs, &ClientMessage{Data: []byte(`{"type":"hello"}`)})
		c.Step(nowMs, &Admitted{Principal: &auth.Principal{Tenant: "acme"}})
		var p pinged
		for range 60 {
			switch random.IntN(8) {
			case 0, 1:
				c.Step(nowMs, &Pong{})
				p.heard = true
			case 2:
				c.full = true // more is unanswered than may be
			case 3:
				if c.full {
					c.Step(nowMs, &Continue{})
					p.comes('.')
					p.heard = true
					forgiven++
				}
			default:
				lateMs := []int64{0, stallMs, stallMs + 1}[random.IntN(20)/9]
				at := &Timer{Ping: []PingState{PingArrived, PingArrived, PingArrived, PingWaits, PingMoves, PingStuck}[random.IntN(6)], Hears: random.IntN(6) == 0}
				nowMs = c.DeadlineMs() + lateMs
				p.look(lateMs > stallMs, c.full, at)
				c.Step(nowMs, at)
			}
			if c.Over() != p.isOver() {
				t.Fatalf("seed %d: over is %t after the pings %s", seed, c.Over(), p.outcomes)
			}
			if c.Over() {
				ends++
				break
			}
		}
	}
	if ends < 100 || forgiven < 100 {
		t.Errorf("only %d sessions ended, and %d times one was read again", ends, forgiven)
	}
}
