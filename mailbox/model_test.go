package mailbox_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"codeq/mailbox"
)

// model is a mailbox that keeps every push by itself and counts by looking at all
// of them.
type model struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	limits mailbox.Limits
	real   *mailbox.Mailbox[int]
	slots  [3]mailbox.Slot[int]
	batch  []int
	number int

	kept, fresh []pushed
	want        mailbox.Figures
	seen        map[string]int

	// since is the drain from which on all left new work behind; zero for none. most
	// is how much of it could wait when it stood last, at stoodAt, 0 for any.
	since, stoodAt time.Time
	most           int
}

// pushed is one push that waits. That of a slot has its number from 1.
type pushed struct {
	messages []int
	bytes    int
	at       time.Time
	slot     int
}

func newModel(t *testing.T, seed uint64) *model {
	l := mailbox.Limits{Messages: 40, Bytes: 200, NewPerDrain: []int{0, 1, 4, 4}[seed%4]}
	return &model{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), limits: l, real: mailbox.New[int](l), seen: map[string]int{},
	}
}

func count(some []pushed) (messages int) {
	for _, p := range some {
		messages += len(p.messages)
	}
	return messages
}

// room is what pushes have not filled; slots take nothing.
func (w *model) room() (messages, bytes int) {
	messages, bytes = w.limits.Messages, w.limits.Bytes
	for _, p := range slices.Concat(w.kept, w.fresh) {
		if p.slot == 0 {
			messages, bytes = messages-len(p.messages), bytes-p.bytes
		}
	}
	return messages, bytes
}

func (w *model) newMessages(n int) (some []int) {
	for range n {
		w.number++
		some = append(some, w.number)
	}
	return some
}

func (w *model) push(class mailbox.Class) {
	p := pushed{messages: w.newMessages(w.random.IntN(7)), bytes: w.random.IntN(20), at: time.Now()}
	messages, bytes := w.room()
	if class == mailbox.ClassNew {
		messages, bytes = messages-w.limits.Messages/4, bytes-w.limits.Bytes/4
	}
	want := mailbox.Accepted
	full := len(p.messages) > messages || p.bytes > bytes
	if stands := class == mailbox.ClassNew && !w.admits(); stands || full {
		want = mailbox.Full
		w.want.Refused += uint64(len(p.messages))
		if !full {
			w.seen["refused because new work stands"]++
		}
	}
	if got := w.real.Push(p.messages, p.bytes, class); got != want {
		w.t.Fatalf("seed %d: a push of %d, %d bytes, class %d is %v, want %v; %+v", w.seed, len(p.messages), p.bytes, class, got, want, w.real.Figures())
	}
	if want == mailbox.Full || len(p.messages) == 0 {
		return
	}
	w.want.Pushed += uint64(len(p.messages))
	if class == mailbox.ClassNew {
		w.fresh = append(w.fresh, p)
	} else {
		w.kept = append(w.kept, p)
	}
}

func (w *model) pushSlot() {
	n, m := 1+w.random.IntN(len(w.slots)), w.newMessages(1)
	w.real.PushSlot(&w.slots[n-1], m[0], func(waiting, m int) int { return 1000*waiting + m })
	w.want.Pushed++
	if i := slices.IndexFunc(w.kept, func(p pushed) bool { return p.slot == n }); i >= 0 {
		w.kept[i].messages[0] = 1000*w.kept[i].messages[0] + m[0]
		w.want.Merged++
		return
	}
	w.kept = append(w.kept, pushed{messages: m, at: time.Now(), slot: n})
}

func (w *model) drain() {
	taken, n := w.kept, 0
	w.kept = nil
	for len(w.fresh) > 0 {
		next := len(w.fresh[0].messages)
		if most := w.limits.NewPerDrain; most > 0 && n > 0 && n+next > most {
			break
		}
		n += next
		taken, w.fresh = append(taken, w.fresh[0]), w.fresh[1:]
	}
	w.batch = w.real.Drain(w.batch)
	var want []int
	for _, p := range taken {
		want = append(want, p.messages...)
	}
	if !slices.Equal(w.batch, want) {
		w.t.Fatalf("seed %d: drained %v, want %v", w.seed, w.batch, want)
	}
	w.leaves()
	if len(want) == 0 {
		return
	}
	oldest := slices.MinFunc(taken, func(a, b pushed) int { return a.at.Compare(b.at) }).at
	if !oldest.Equal(taken[0].at) {
		w.seen["the oldest is not the first"]++
	}
	w.want.Batches++
	w.want.LastBatch, w.want.MaxBatch = len(want), max(w.want.MaxBatch, len(want))
	w.want.LastWait = time.Since(oldest)
	w.want.MaxWait = max(w.want.MaxWait, w.want.LastWait)
}

// standsFrom is when what is left has been left for long enough.
func (w *model) standsFrom() time.Time {
	if w.most > 0 {
		return w.since.Add(mailbox.OverloadAfterMs / 2 * time.Millisecond)
	}
	return w.since.Add(mailbox.OverloadAfterMs * time.Millisecond)
}

func (w *model) stands() bool { return !w.since.IsZero() && !time.Now().Before(w.standsFrom()) }

// known: it was seen to stand since drains leave something.
func (w *model) known() bool { return w.most > 0 && !w.stoodAt.Before(w.standsFrom()) }

// bound is how much new work may wait, 0 for any.
func (w *model) bound() int {
	if w.most == 0 || w.stands() && w.known() {
		return w.most
	}
	bound := w.most
	for n, at := 1, w.stoodAt.Add(mailbox.DoubleAfterMs*time.Millisecond); !at.After(time.Now()); at = at.Add(mailbox.DoubleAfterMs * time.Millisecond) {
		if n++; n > 24 {
			return 0
		}
		bound *= 2
	}
	return bound
}

// standsAnew sets the bound where what waits begins to stand: as much as waits, and
// never more than was allowed already.
func (w *model) standsAnew() {
	if !w.known() {
		bound, waiting := w.bound(), count(w.fresh)
		if bound > 0 && waiting > bound {
			w.seen["more waits than was allowed"]++
		}
		if bound == 0 || waiting < bound {
			bound = waiting
		}
		w.most = bound
	}
	w.most, w.stoodAt = max(w.most, w.limits.NewPerDrain), time.Now()
}

func (w *model) admits() bool {
	if w.stands() {
		w.standsAnew()
	}
	bound := w.bound()
	return bound == 0 || count(w.fresh) < bound
}

// leaves notes what a drain has left.
func (w *model) leaves() {
	if len(w.fresh) == 0 {
		w.since = time.Time{}
		if w.bound() == 0 {
			w.most = 0
		}
		return
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if !w.stands() {
		return
	}
	if w.known() {
		w.most -= max(w.limits.NewPerDrain/4, 1)
	}
	w.standsAnew()
}

// pauses are mostly of the length that decides whether new work stands.
var pauses = []time.Duration{
	0, time.Millisecond, 40 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 120 * time.Millisecond,
	120 * time.Millisecond, 200 * time.Millisecond, 3 * time.Second, 6 * time.Second, 3 * time.Minute,
}

func (w *model) act() {
	switch w.random.IntN(12) {
	case 0, 1, 2:
		w.push(mailbox.ClassNew)
	case 3, 4:
		w.push(mailbox.ClassKeep)
	case 5:
		w.pushSlot()
	case 6, 7:
		w.drain()
	case 8:
		for w.real.Figures().New > 0 {
			w.drain()
		}
	default:
		pass(pauses[w.random.IntN(len(pauses))])
	}
}

func (w *model) check() {
	messages, bytes := w.room()
	f := &w.want
	f.Depth, f.New, f.DepthBytes = count(w.kept)+count(w.fresh), count(w.fresh), w.limits.Bytes-bytes
	f.HighWater = max(f.HighWater, f.Depth)
	f.BacklogForMs, f.NewLimit = 0, w.bound()
	if !w.since.IsZero() {
		f.BacklogForMs = time.Since(w.since).Milliseconds()
	}
	if got := w.real.Figures(); got != *f {
		w.t.Fatalf("seed %d: figures are\n%+v, want\n%+v", w.seed, got, *f)
	}
	if got := len(w.real.Wake()) > 0; got != (f.Depth > 0) {
		w.t.Fatalf("seed %d: awake %t, with %d that wait, room for %d", w.seed, got, f.Depth, messages)
	}
}

// Random pushes, drains and pauses, compared after each with the model.
func TestMailboxAgreesWithOneThatCounts(t *testing.T) {
	seen := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(400) {
			w := newModel(t, seed)
			w.seen = seen
			for range 400 {
				w.act()
				w.check()
			}
		}
	})
	// A run that never comes to the hard places proves nothing.
	for _, what := range []string{"refused because new work stands", "the oldest is not the first", "more waits than was allowed"} {
		t.Logf("%s: %d", what, seen[what])
		if seen[what] < 20 {
			t.Errorf("%s: only %d times", what, seen[what])
		}
	}
}
