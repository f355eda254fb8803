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

	kept []pushed
	// fresh is the new work of each owner of whom something waits, in their turns; at is
	// whose turn it is.
	fresh [][]pushed
	at    int
	// shared is for how many more drains pushes are taken in parts.
	shared int
	want   mailbox.Figures
	seen   map[string]int

	// since is the drain from which on all left new work behind; zero for none. passing is
	// how many of the messages of then have not been counted off by later ones. most
	// is how much of it could wait when it stood last, at stoodAt, 0 for any.
	since, stoodAt time.Time
	passing        int
	most           int
}

// sharedDrains is for how many drains pushes are taken in parts.
const sharedDrains = 64

// pushed is one push that waits. That of a slot has its number from 1.
type pushed struct {
	owner    string
	messages []int
	bytes    int
	at       time.Time
	slot     int
}

func newModel(t *testing.T, seed uint64) *model {
	l := mailbox.Limits{Messages: 40, Bytes: 200, NewPerDrain: []int{0, 1, 4, 4}[seed%4]}
	w := &model{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), limits: l, seen: map[string]int{}}
	w.real = mailbox.NewAt(l, func() int64 { return time.Now().UnixMilli() }, w.ownerOf)
	return w
}

// ownerOf: one world in three has one owner, the others have three.
func (w *model) ownerOf(message int) string {
	if w.seed%3 == 0 {
		return "a"
	}
	return []string{"a", "b", "c"}[message%3]
}

// of is what waits of an owner.
func (w *model) of(owner string) []pushed {
	for _, own := range w.fresh {
		if own[0].owner == owner {
			return own
		}
	}
	return nil
}

func sizeOf(some []pushed) (bytes int) {
	for _, p := range some {
		bytes += p.bytes
	}
	return bytes
}

func count(some []pushed) (messages int) {
	for _, p := range some {
		messages += len(p.messages)
	}
	return messages
}

// new is all new work that waits.
func (w *model) new() []pushed { return slices.Concat(w.fresh...) }

// room is what pushes have not filled; slots take nothing.
func (w *model) room() (messages, bytes int) {
	messages, bytes = w.limits.Messages, w.limits.Bytes
	for _, p := range slices.Concat(w.kept, w.new()) {
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
	if len(p.messages) > 0 {
		p.owner = w.ownerOf(p.messages[0])
	}
	want := mailbox.Accepted
	if n := len(p.messages); n > 0 && class == mailbox.ClassNew && !w.takesNew(&p) || n > 0 && !w.fits(&p, class) {
		want = mailbox.Full
		w.want.Refused += uint64(n)
	}
	if got := w.real.Push(p.messages, p.bytes, class); got != want {
		w.t.Fatalf("seed %d: a push of %v, %d bytes, class %d is %v, want %v; %+v, new work %+v", w.seed, p.messages, p.bytes, class, got, want, w.real.Figures(), w.fresh)
	}
	if want == mailbox.Full || len(p.messages) == 0 {
		return
	}
	w.want.Pushed += uint64(len(p.messages))
	if class == mailbox.ClassKeep {
		w.kept = append(w.kept, p)
		return
	}
	for n, own := range w.fresh {
		if own[0].owner == p.owner {
			w.fresh[n] = append(own, p)
			return
		}
	}
	w.fresh = append(w.fresh, []pushed{p})
}

// takesNew: a backlog that stands lets the push in.
func (w *model) takesNew(p *pushed) bool {
	if w.stands() {
		w.standsAnew()
	}
	bound, own := w.bound(), count(w.of(p.owner))
	switch all := count(w.new()); {
	case bound == 0:
		return true
	case own == all && own >= bound:
		w.seen["refused because new work stands"]++
		return false
	case own == all:
		return true
	case 2*own >= bound:
		w.seen["refused because its owner has half"]++
		return false
	}
	others := 0
	for _, of := range w.fresh {
		others += min(count(of), (bound+1)/2)
	}
	if count(w.new()) >= bound && others < bound {
		w.seen["let in beside somebody with more than half"]++
	}
	return others < bound
}

// fits: the mailbox has room for a push.
func (w *model) fits(p *pushed, class mailbox.Class) bool {
	messages, bytes := w.room()
	if class == mailbox.ClassKeep {
		return len(p.messages) <= messages && p.bytes <= bytes
	}
	own := w.of(p.owner)
	if len(own) == len(w.new()) {
		return len(p.messages) <= messages-w.limits.Messages/4 && p.bytes <= bytes-w.limits.Bytes/4
	}
	half := count(own)+len(p.messages) > w.limits.Messages*3/8 || sizeOf(own)+p.bytes > w.limits.Bytes*3/8
	if len(own) > 0 && half {
		w.seen["full because its owner has half"]++
		return false
	}
	return len(p.messages) <= messages-w.limits.Messages/8 && p.bytes <= bytes-w.limits.Bytes/8
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
	fresh := w.turns()
	taken := append(w.kept, fresh...)
	w.kept = nil
	w.batch = w.real.Drain(w.batch)
	var want []int
	for _, p := range taken {
		want = append(want, p.messages...)
	}
	if !slices.Equal(w.batch, want) {
		w.t.Fatalf("seed %d: drained %v, want %v; then %+v at %d", w.seed, w.batch, want, w.fresh, w.at)
	}
	w.leaves(count(fresh))
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

// turns are the pushes that a drain takes. Each turn is at most an equal share, or one push
// of an owner that is alone.
func (w *model) turns() (taken []pushed) {
	most := w.limits.NewPerDrain
	if w.shared--; len(w.fresh) > 1 {
		w.shared = sharedDrains
	}
	if w.shared > 0 && most > 0 {
		return w.parts(most)
	}
	for share := (most + len(w.fresh) - 1) / max(len(w.fresh), 1); len(w.fresh) > 0; {
		w.at %= len(w.fresh)
		for turn := 0; len(w.fresh[w.at]) > 0; {
			next := w.fresh[w.at][0]
			n := len(next.messages)
			if most > 0 && len(taken) > 0 && count(taken)+n > most {
				if turn == 0 {
					return taken // it begins the next drain
				}
				break
			}
			if most > 0 && turn > 0 && turn+n > share {
				break
			}
			turn += n
			taken, w.fresh[w.at] = append(taken, next), w.fresh[w.at][1:]
		}
		if len(w.fresh[w.at]) == 0 {
			w.fresh = slices.Delete(w.fresh, w.at, w.at+1)
		} else {
			w.at++
		}
	}
	return taken
}

// parts are as many messages as a drain takes while owners share it, each as a push.
func (w *model) parts(most int) (taken []pushed) {
	for share := (most + len(w.fresh) - 1) / max(len(w.fresh), 1); len(w.fresh) > 0; {
		if w.at %= len(w.fresh); len(taken) == most {
			return taken
		}
		for turn := 0; turn < share && len(taken) < most && len(w.fresh[w.at]) > 0; turn++ {
			next := &w.fresh[w.at][0]
			part := pushed{messages: next.messages[:1], at: next.at}
			if len(next.messages) > 1 {
				w.seen["a push in parts"]++
			}
			taken = append(taken, part)
			if next.messages = next.messages[1:]; len(next.messages) == 0 {
				w.fresh[w.at] = w.fresh[w.at][1:]
			}
		}
		if len(w.fresh[w.at]) == 0 {
			w.fresh = slices.Delete(w.fresh, w.at, w.at+1)
		} else {
			w.at++
		}
	}
	return taken
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
		bound, waiting := w.bound(), count(w.new())
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

// leaves notes what a drain has left that took so many.
func (w *model) leaves(taken int) {
	if len(w.fresh) == 0 {
		w.since = time.Time{}
		if w.bound() == 0 {
			w.most = 0
		}
		return
	}
	if w.passing -= taken; !w.since.IsZero() && w.passing <= 0 {
		w.seen["all that waited is taken, and other work waits"]++
	}
	if w.since.IsZero() || w.passing <= 0 {
		w.since, w.passing = time.Now(), count(w.new())
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
	f.Depth, f.New, f.DepthBytes = count(w.kept)+count(w.new()), count(w.new()), w.limits.Bytes-bytes
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
	for _, what := range []string{
		"refused because new work stands", "the oldest is not the first", "more waits than was allowed",
		"refused because its owner has half", "full because its owner has half", "let in beside somebody with more than half",
		"a push in parts", "all that waited is taken, and other work waits",
	} {
		t.Logf("%s: %d", what, seen[what])
		if seen[what] < 20 {
			t.Errorf("%s: only %d times", what, seen[what])
		}
	}
}
