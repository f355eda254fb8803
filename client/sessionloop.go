package client

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"codeq/wire"
)

// sessionLoop is the loop of a Session and all its state.
type sessionLoop struct {
	loop
	session *Session
	options SessionOptions

	// owned by the loop
	err      error // why the session ends, nil while it does not
	lostAt   time.Time
	queue    []*posting         // not sent on this link yet, in order
	inFlight map[int64]*posting // sent on this link, by ref
	bytes    int                // of queue and inFlight
	carried  []*posting         // the posts in message
	// offer is how many may be in inFlight, answers how many this link brought. A
	// link that breaks before it has answered what was sent halves the offer, so
	// that one that carries little answers it all; each answer adds one. A server that is
	// overloaded halves it, too: beyond careful, where it last was so, an answer to each that
	// is offered adds one, so that the session comes to what the server takes without refusing.
	offer    int
	answers  int
	careful  int
	unraised int // answers since offer was raised
}

func (p *sessionLoop) run(first *link) {
	p.stop = p.session.stop
	p.loop.run(p, first)
	p.redial.stop()
	p.queue = slices.AppendSeq(p.queue, maps.Values(p.inFlight))
	slices.SortFunc(p.queue, byRef)
	for _, one := range p.queue {
		one.done(nil, unanswered(one, p.err))
	}
	p.session.err = p.err
	close(p.session.ended)
}

// step composes the next message, and takes posts while the limits allow.
func (p *sessionLoop) step(now time.Time) (time.Time, bool) {
	p.pauseOver(now)
	if p.pauseEnd.IsZero() && p.mayCompose() {
		n := max(0, min(len(p.queue), p.offer-len(p.inFlight)))
		n = p.compose(n, func(i int) wire.ClientFrame { return p.queue[i].frame() })
		p.carried = append(p.carried[:0], p.queue[:n]...)
	}
	p.events = nil
	if p.mayAccept() {
		p.events = p.session.events
	}
	return time.Time{}, p.err != nil
}

func (p *sessionLoop) mayAccept() bool {
	unanswered, limit := len(p.queue)+len(p.inFlight), maxPosts
	if p.link != nil {
		limit = min(limit, p.link.welcome.MaxUnanswered)
	}
	return unanswered == 0 || unanswered < limit && p.bytes < maxPostBytes
}

func (p *sessionLoop) accept(one *posting) {
	one.ref = p.ref()
	p.bytes += one.bytes()
	p.queue = append(p.queue, one)
}

func (p *sessionLoop) drained() {}

func (p *sessionLoop) stopped() { p.err = ErrClosed }

func (p *sessionLoop) handed() {
	for _, one := range p.carried {
		one.sent, one.refusal = true, nil
		p.inFlight[one.ref.Value] = one
	}
	p.queue = slices.Delete(p.queue, 0, len(p.carried))
}

func (p *sessionLoop) written() {}

func (p *sessionLoop) receive(frame wire.ServerFrame) {
	switch frame := frame.(type) {
	case *wire.OK:
		p.answered(frame)
	case *wire.ErrorFrame:
		p.refused(frame)
	}
}

func (p *sessionLoop) answered(frame *wire.OK) {
	one := p.inFlight[frame.Ref.Value]
	if one == nil {
		return // nothing that is waited for
	}
	p.succeeded()
	p.answers++
	p.raiseOffer()
	p.finish(one, &Enqueued{TaskID: frame.TaskID, Replayed: frame.Replayed, Repeated: one.unsure}, nil)
}

// raiseOffer counts an answer.
func (p *sessionLoop) raiseOffer() {
	if p.unraised++; p.offer < p.careful || p.unraised >= p.offer {
		p.offer, p.unraised = min(p.offer+1, maxPosts), 0
	}
}

func (p *sessionLoop) finish(one *posting, enqueued *Enqueued, err error) {
	delete(p.inFlight, one.ref.Value)
	p.bytes -= one.bytes()
	one.done(enqueued, err)
}

// refused repeats a request that may be repeated, and ends any other with the refusal.
func (p *sessionLoop) refused(frame *wire.ErrorFrame) {
	one := p.inFlight[frame.Ref.Value]
	if one == nil || !frame.Ref.Present {
		return // the end of the link follows if it concerns the session
	}
	full := p.options.NoWaitForSpace && frame.Err.Code == wire.CodeStorageFull
	if full || !one.verb().again(frame.Err) || one.abandoned.Load() {
		p.finish(one, nil, frame.Err)
		return
	}
	delete(p.inFlight, one.ref.Value)
	one.sent, one.refusal = false, frame.Err
	one.unsure = one.unsure || fateOf(frame.Err)&inDoubt != 0
	p.requeue([]*posting{one})
	if frame.Err.Code == wire.CodeOverloaded && p.pauseEnd.IsZero() {
		p.offer = max(1, p.offer/2)
		p.careful = p.offer
	}
	p.pause(frame.Err, "the server takes no tasks now")
}

// requeue puts posts back to where their refs say, in front of younger ones. A message
// that was composed before is composed anew.
func (p *sessionLoop) requeue(back []*posting) {
	p.queue = append(p.queue, back...)
	slices.SortFunc(p.queue, byRef)
	p.message = nil
}

func byRef(a, b *posting) int { return cmp.Compare(a.ref.Value, b.ref.Value) }

func (p *sessionLoop) connected() { p.lostAt = time.Time{} }

// disconnected repeats the requests in flight that may be repeated; of the others
// nobody knows whether the server has done them.
func (p *sessionLoop) disconnected(error) {
	p.lostAt = time.Now()
	if sent := len(p.inFlight); sent > p.answers {
		p.offer = max(1, min(p.offer, sent)/2)
	}
	p.answers = 0
	var again []*posting
	for _, one := range slices.SortedFunc(maps.Values(p.inFlight), byRef) {
		if one.verb() == harmlessFrame && !one.abandoned.Load() {
			one.unsure = true
			again = append(again, one)
			continue
		}
		p.finish(one, nil, ErrOutcomeUnknown)
	}
	clear(p.inFlight)
	p.requeue(again)
}

// dialFailed ends the session after a refusal that will not change, or too long a search.
func (p *sessionLoop) dialFailed(err error) bool {
	limit := p.options.GiveUpAfter
	if !p.redial.worthAnother(producerLink, err) || limit > 0 && time.Since(p.lostAt) >= limit {
		p.err = err
	}
	return p.err == nil
}
