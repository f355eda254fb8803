package watch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

// workerView is what a client that watches sessions knows.
type workerView struct {
	sub      *Subscriber
	sessions map[string]wire.SessionFigures
	whole    bool
}

func newWorkerView(t *testing.T, b *Board, nowMs int64) *workerView {
	sub, refusal := NewSubscriber(b, principal("t1", auth.ScopeRead), nowMs)
	if refusal != nil {
		t.Fatal(refusal)
	}
	sub.Take(nowMs, &wire.WatchSubscribe{ID: "w", Kind: wire.WatchWorkers}, nil)
	return &workerView{sub: sub, whole: true}
}

func (v *workerView) read(t *testing.T, nowMs int64) bool {
	list := frames(t, v.sub.Next(nowMs))
	for _, f := range list {
		var state *wire.WatchState
		switch f := f.(type) {
		case *wire.WatchSnapshot:
			if v.whole {
				v.sessions = map[string]wire.SessionFigures{}
			}
			v.whole, state = !f.More, &f.WatchState
		case *wire.WatchTick:
			state = &f.WatchState
		default:
			continue
		}
		for _, one := range state.Sessions {
			v.sessions[one.ID.String()] = one
		}
		for _, id := range state.Left {
			delete(v.sessions, id)
		}
	}
	return len(list) > 0
}

// TestWhoWatchesWorkersKnowsWhoIsThere: whatever comes, changes and leaves, and however slowly a
// client reads, it has the sessions of its tenant in the end.
func TestWhoWatchesWorkersKnowsWhoIsThere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r, nowMs := rand.New(rand.NewPCG(seed, 3)), int64(1_000_000)
		log := newFakeLog(1, 1)
		board := NewBoard(log.facts())
		log.sessions["t2"] = []wire.SessionFigures{{ID: wire.SessionID{7}, Subject: "other"}}
		wide := strings.Repeat("c", 1+r.IntN(3000))
		step := func() {
			now := log.sessions["t1"]
			switch at := r.IntN(len(now) + 1); {
			case at == len(now) || r.IntN(3) == 0 && len(now) < 300:
				f := wire.SessionFigures{ID: wire.SessionID{0: byte(r.Int()), 1: byte(r.Int())}, Subject: "bob", Commands: []string{wide}, State: wire.SessionLive}
				now = slices.DeleteFunc(slices.Clone(now), func(o wire.SessionFigures) bool { return o.ID == f.ID })
				now = append(now, f)
				slices.SortFunc(now, func(a, b wire.SessionFigures) int { return bytes.Compare(a.ID[:], b.ID[:]) })
			case r.IntN(3) == 0:
				now = slices.Delete(slices.Clone(now), at, at+1)
			default:
				now = slices.Clone(now)
				now[at].Held++
			}
			log.sessions["t1"] = now
		}
		for range r.IntN(400) {
			step()
		}
		views := []*workerView{newWorkerView(t, board, nowMs), newWorkerView(t, board, nowMs)}
		other, refusal := NewSubscriber(board, principal("t2", auth.ScopeRead), nowMs)
		if refusal != nil {
			t.Fatal(refusal)
		}
		other.Take(nowMs, &wire.WatchSubscribe{ID: "w", Kind: wire.WatchWorkers}, nil)
		lazy := 1 + r.IntN(100)
		for range 300 {
			step()
			if nowMs += r.Int64N(1 << r.IntN(14)); r.IntN(40) == 0 {
				nowMs += 2 * goneForMs
				board.forgetRosters(nowMs)
			}
			other.Next(nowMs)
			views[0].read(t, nowMs)
			if r.IntN(lazy) == 0 {
				views[1].read(t, nowMs)
			}
		}
		want := map[string]wire.SessionFigures{}
		for _, f := range log.sessions["t1"] {
			want[f.ID.String()] = f
		}
		for i, v := range views {
			for idle := 0; idle < 3; {
				nowMs += 1000
				if idle++; v.read(t, nowMs) {
					idle = 0
				}
			}
			if !reflect.DeepEqual(v.sessions, want) {
				t.Fatalf("seed %d: client %d has %d sessions, %d are there", seed, i, len(v.sessions), len(want))
			}
		}
	}
}

func BenchmarkTickOfWorkers(b *testing.B) {
	log := newFakeLog(1, 1)
	for n := range 1000 {
		log.sessions["t1"] = append(log.sessions["t1"], wire.SessionFigures{
			ID: wire.SessionID{byte(n >> 8), byte(n)}, Subject: "bob", WorkerID: fmt.Sprint("w", n), Commands: []string{"mail"}, State: wire.SessionLive,
		})
	}
	r := &roster{}
	for nowMs := int64(1); b.Loop(); nowMs += refreshForMs {
		r.take(log.sessions["t1"], nowMs)
	}
}

// TestWhoComesBackToAForgottenRosterSeesItAnew: who does not read for more than a minute has rows
// of a roster that is dropped. The numbers of the changes of the next one must not be the same again.
func TestWhoComesBackToAForgottenRosterSeesItAnew(t *testing.T) {
	t.Parallel()
	log, nowMs := newFakeLog(1, 1), int64(1_000_000)
	b := NewBoard(log.facts())
	log.sessions["t1"] = []wire.SessionFigures{{ID: wire.SessionID{1}, Subject: "early", State: wire.SessionLive}}
	v := newWorkerView(t, b, nowMs)
	v.read(t, nowMs)
	log.sessions["t1"] = []wire.SessionFigures{{ID: wire.SessionID{2}, Subject: "late", State: wire.SessionLive}}
	nowMs += 2 * goneForMs
	b.rosterOf("t2", nowMs)
	v.read(t, nowMs)
	if _, late := v.sessions[wire.SessionID{2}.String()]; !late || len(v.sessions) != 1 {
		t.Errorf("after a pause the client has %+v", v.sessions)
	}
}

// TestRostersOfTenantsWhoLeftAreForgotten: a board knows the sessions of a tenant for a minute
// after the last look, however many tenants come.
func TestRostersOfTenantsWhoLeftAreForgotten(t *testing.T) {
	t.Parallel()
	b := NewBoard(newFakeLog(1, 1).facts())
	for i := range int64(100) {
		b.rosterOf(fmt.Sprint("tenant ", i), i*goneForMs/10)
	}
	if n := len(b.rosters); n > 12 {
		t.Errorf("the board has the sessions of %d tenants, though at most 11 were looked at in the last minute", n)
	}
}
