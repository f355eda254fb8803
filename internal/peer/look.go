package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// lookEvery is how often the leader asks every node how it is: how much space it has, and
	// what time it is there. Nobody tells when a disk fills or a clock is set.
	lookEvery = 5 * time.Second
	// goodFor is for how long an answer counts, clockGoodFor for how long the time in it does, also
	// of a node that has been lost since: it was most likely the leader.
	goodFor      = 3 * lookEvery
	clockGoodFor = time.Minute
	// mostApart is how far the clock of a node may be from the middle one of the voters if it is
	// to lead; clocksFor is how long those that are not known may take to answer before.
	mostApart = 10 * time.Second
	clocksFor = 300 * time.Millisecond
)

// question is what a node asks another one for its status: its own time, in Unix milliseconds,
// the newest form of entries of the log that it reads, and whether it asks clients for credentials.
type question struct {
	NowMs int64 `json:"nowMs,omitempty"`
	Form  int   `json:"form,omitempty"`
	Asks  bool  `json:"asks,omitempty"`
}

// known is what a node knows of another one.
type known struct {
	// away: it did not answer.
	away bool
	// freeBytes is the space that it has, 0 if that is not known.
	freeBytes int64
	at        time.Time
	// ahead is how far its clock was ahead of that of this node when it last said its time.
	ahead  time.Duration
	saidAt time.Time
	// form is the newest form of entries that it reads, as it said last; 0 if it never did.
	form int
	// asks says that it asks clients for credentials.
	asks bool
}

// looks is what a node knows of the others, by their ids. Any goroutine.
type looks struct {
	nowMs func() int64
	mu    sync.Mutex
	of    map[string]known
}

// note keeps what a node has answered. One that is away has said its time before.
func (l *looks) note(node string, k known) {
	l.change(node, func(was *known) {
		if was.away, was.freeBytes = k.away, k.freeBytes; !k.away {
			was.says(&k)
		}
	})
}

// change changes what is known of a node, which has just been heard of.
func (l *looks) change(node string, by func(*known)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]known)
	}
	k := l.of[node]
	k.at = time.Now()
	by(&k)
	l.of[node] = k
}

// says notes what it says of itself now.
func (k *known) says(now *known) {
	k.away, k.ahead, k.saidAt, k.form, k.asks = false, now.ahead, k.at, now.form, now.asks
}

// fresh are those whose answers count.
func (l *looks) fresh() map[string]known {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := maps.Clone(l.of)
	maps.DeleteFunc(all, func(_ string, k known) bool { return time.Since(k.at) > goodFor })
	return all
}

// about asks a node how it is.
func (p *Peers) about(ctx context.Context, m Member) (*About, time.Duration, error) {
	said, before := &About{}, p.looks.nowMs()
	err := post(ctx, p.client(m.Node), m.Address+"/status", question{before, p.form, !p.open}, said)
	ahead := time.Duration(0)
	if said.NowMs != 0 { // a node of 0.1.0 does not tell it
		ahead = time.Duration(said.NowMs-(before+p.looks.nowMs())/2) * time.Millisecond
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // else nobody waits any more, and it may be well
		p.looks.note(m.Node, known{away: err != nil, freeBytes: said.FreeBytes, ahead: ahead, form: said.Form, asks: said.Asks})
	}
	return said, ahead, err
}

// isAsked notes what a node that asks says of itself. Its disk is as it was.
func (p *Peers) isAsked(node string, q question) {
	if q.NowMs != 0 {
		ahead := time.Duration(q.NowMs-p.looks.nowMs()) * time.Millisecond
		p.looks.change(node, func(k *known) { k.says(&known{ahead: ahead, form: q.Form, asks: q.Asks}) })
	}
}

// look asks every node how it is while this one leads, until stop is closed. A leader whose clock
// was set hands over.
func (p *Peers) look(node Node, stop <-chan struct{}) {
	changes, unsubscribe := node.Changes()
	defer unsubscribe()
	for {
		var again <-chan time.Time
		if leader, _ := node.Leader(); leader == p.directory.self.Node {
			ctx, cancel := context.WithTimeout(context.Background(), statusFor)
			p.ask(ctx, func(Member) bool { return true })
			if err := p.MayLead(ctx); err != nil {
				p.log.Error().Err(err).AnErr("handOver", node.Transfer(ctx, "")).Msg("this node may lead no more; another one is asked to")
			}
			cancel()
			again = time.After(lookEvery)
		}
		select {
		case <-changes:
		case <-again:
		case <-stop:
			return
		}
	}
}

// Glance is how many voters answer, and how far another clock is off at most, 0 below a second, by
// what each node has said last. It asks those that have said nothing for some time.
func (p *Peers) Glance() (reachable int, apart time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), statusFor)
	defer cancel()
	fresh := p.looks.fresh()
	p.ask(ctx, func(m Member) bool { _, is := fresh[m.Node]; return !is })
	fresh = p.looks.fresh()
	for _, m := range p.members() {
		k, is := fresh[m.Node]
		answers := is && !k.away
		if m.Voter && (answers || m.Node == p.directory.self.Node) {
			reachable++
		}
		if off := k.ahead.Abs(); answers && off > shownApart {
			apart = max(apart, off)
		}
	}
	return reachable, apart
}

// ask asks those of the other members that are wanted, at once.
func (p *Peers) ask(ctx context.Context, wanted func(Member) bool) {
	var asked sync.WaitGroup
	for _, m := range p.members() {
		if m.Node != p.directory.self.Node && wanted(m) {
			asked.Go(func() {
				_, _, _ = p.about(ctx, m) // what it knows then is noted
			})
		}
	}
	asked.Wait()
}

// MayLead refuses if this node asks clients for no credentials and another voter does, and if its clock
// is not that of the other voters: work would be due
// at the wrong time, and every later leader would have to go on from there. Clocks of fewer than
// three voters do not say whose is wrong. It returns soon.
func (p *Peers) MayLead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clocksFor)
	defer cancel()
	fresh := p.looks.fresh()
	p.ask(ctx, func(m Member) bool { k, is := fresh[m.Node]; return m.Voter && (!is || k.away) })
	clocks := []time.Duration{0}
	for node, k := range p.looks.fresh() {
		if p.open && k.asks && p.votes(node) {
			return fmt.Errorf("this node runs without authentication, and the node %s with it: start all nodes with the same tokens and providers", node)
		}
		if time.Since(k.saidAt) <= clockGoodFor && p.votes(node) {
			clocks = append(clocks, k.ahead)
		}
	}
	return ClockAgrees(clocks)
}

// ClockAgrees refuses if the clock of a node is not the middle one of those of the voters. ahead,
// which it sorts, is how far each that is known is ahead of it, 0 for its own.
func ClockAgrees(ahead []time.Duration) error {
	if len(ahead) < 3 {
		return nil
	}
	slices.Sort(ahead)
	// If their number is even, either of the two middle ones may be right.
	for _, middle := range ahead[(len(ahead)-1)/2 : len(ahead)/2+1] {
		if middle.Abs() <= mostApart {
			return nil
		}
	}
	middle := ahead[len(ahead)/2]
	return fmt.Errorf("the clock of this node is %v %s those of the other voters, and a leader's may be %v: set it", middle.Abs().Round(time.Millisecond), behindOrAhead(-middle), mostApart)
}

func behindOrAhead(ahead time.Duration) string {
	if ahead < 0 {
		return "behind"
	}
	return "ahead of"
}

// Announced is the newest form of entries of the log that all members have said to read. One
// that has said nothing is of 0.1.0, or has not been asked: it reads the first form.
func (p *Peers) Announced() int {
	form, members := p.form, p.members()
	p.looks.mu.Lock()
	defer p.looks.mu.Unlock()
	for _, m := range members {
		if m.Node != p.directory.self.Node {
			form = min(form, max(1, p.looks.of[m.Node].form))
		}
	}
	return form
}

// FreeBytes is the space that the cluster can count on: the second-lowest of all voters, of which
// this one has own, so that one full disk does not stop the others. A voter that does not answer
// counts as one without space: the others need theirs all the more. Before it has asked it is own, and
// while no majority answers: then nothing can be written anyway, and not for want of space.
func (p *Peers) FreeBytes(own int64) int64 {
	fresh := p.looks.fresh()
	if len(fresh) == 0 {
		return own
	}
	free, voters, away := []int64{own}, 0, 0
	for _, m := range p.members() {
		k, is := fresh[m.Node]
		if m.Voter {
			voters++
		}
		switch {
		case !m.Voter || m.Node == p.directory.self.Node || !is:
		case k.away:
			free, away = append(free, 0), away+1
		case k.freeBytes > 0:
			free = append(free, k.freeBytes)
		}
	}
	if 2*away >= voters {
		return own
	}
	return CountFree(free)
}

// CountFree is the space to count on of voters of which each has so much: the second-lowest, or
// that of the only one. It sorts them.
func CountFree(free []int64) int64 {
	slices.Sort(free)
	return free[min(1, len(free)-1)]
}
