package client

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"codeq/wire"
)

// maxMessageBytes is where a client message is closed and the next begun; only
// a single larger frame makes a larger one.
const maxMessageBytes = 256 << 10

// producer is the loop of a Session and all its state.
type producer struct {
	// static
	session *Session
	options SessionOptions

	// owned by the loop
	redial   *redialer
	link     *link // nil while there is none
	lostAt   time.Time
	lastRef  int64
	queue    []*posting         // not sent on this link yet, in order
	inFlight map[int64]*posting // sent on this link, by ref
	bytes    int                // of queue and inFlight
	message  []byte             // ready for the writer, nil if none
	carried  []*posting         // the posts in message
	// offer is how many may be in inFlight, answers how many this link brought. A
	// link that breaks before it has answered what was sent halves the offer, so
	// that one that carries little answers it all; each answer adds one.
	offer   int
	answers int
	writing bool
	// resting is the time until which nothing is sent, because the server
	// asked for it; refusals counts those without a success in between.
	resting  *time.Timer
	rests    bool
	refusals int
}

func (p *producer) run(first *link) {
	p.resting = time.NewTimer(0)
	<-p.resting.C
	p.up(first)
	err := p.loop()
	p.end(err)
}

// loop runs until the session is closed or given up, and returns why.
func (p *producer) loop() error {
	for {
		p.compose()
		var posts chan *posting
		if p.mayAccept() {
			posts = p.session.posts
		}
		var outgoing chan []byte
		var incoming chan []wire.ServerFrame
		var written, gone chan struct{}
		if p.link != nil {
			incoming, written, gone = p.link.incoming, p.link.written, p.link.gone
			if p.message != nil && !p.writing {
				outgoing = p.link.outgoing
			}
		}
		select {
		case <-p.session.stop:
			return ErrClosed
		case one := <-posts:
			p.accept(one)
		case outgoing <- p.message:
			p.handedOver()
		case <-written:
			p.writing = false
		case frames := <-incoming:
			p.take(frames)
		case <-p.resting.C:
			p.rests = false
		case <-gone:
			p.down()
		case next := <-p.redial.dialled:
			if err := p.redialled(next); err != nil {
				return err
			}
		}
	}
}

func (p *producer) mayAccept() bool {
	under := len(p.queue) + len(p.inFlight)
	limit := maxPosts
	if p.link != nil {
		limit = min(limit, p.link.welcome.MaxUnanswered)
	}
	return under == 0 || under < limit && p.bytes < maxPostBytes
}

func (p *producer) accept(one *posting) {
	p.lastRef++
	one.ref = p.lastRef
	p.bytes += one.bytes()
	p.queue = append(p.queue, one)
}

// compose makes the next message of what waits, once the writer is free: the
// longer it was busy, the more goes into one message.
func (p *producer) compose() {
	if p.link == nil || p.writing || p.rests || p.message != nil || len(p.queue) == 0 || len(p.inFlight) >= p.offer {
		return
	}
	message, taken := []byte{'['}, 0
	for _, one := range p.queue[:min(len(p.queue), p.offer-len(p.inFlight))] {
		mark := len(message)
		if taken > 0 {
			message = append(message, ',')
		}
		message = wire.AppendClientFrame(message, one.frame())
		if taken > 0 && len(message) > maxMessageBytes {
			message = message[:mark]
			break
		}
		taken++
	}
	p.message = append(message, ']')
	p.carried = append(p.carried[:0], p.queue[:taken]...)
}

func (p *producer) handedOver() {
	for _, one := range p.carried {
		one.sent, one.refusal = true, nil
		p.inFlight[one.ref] = one
	}
	p.queue = slices.Delete(p.queue, 0, len(p.carried))
	p.message, p.writing = nil, true
}

func (p *producer) take(frames []wire.ServerFrame) {
	for _, frame := range frames {
		switch frame := frame.(type) {
		case *wire.OK:
			p.answered(frame)
		case *wire.ErrorFrame:
			p.refused(frame)
		case *wire.Draining:
			p.redial.goodbye = true
		}
	}
}

func (p *producer) answered(frame *wire.OK) {
	one := p.inFlight[frame.Ref.Value]
	if one == nil {
		return // nothing that is waited for
	}
	p.refusals = 0
	p.answers++
	p.offer = min(p.offer+1, maxPosts)
	p.finish(one, &Enqueued{TaskID: frame.TaskID, Replayed: frame.Replayed, Repeated: one.unsure}, nil)
}

func (p *producer) finish(one *posting, enqueued *Enqueued, err error) {
	delete(p.inFlight, one.ref)
	p.bytes -= one.bytes()
	one.done(enqueued, err)
}

// refused repeats what may be repeated.
func (p *producer) refused(frame *wire.ErrorFrame) {
	one := p.inFlight[frame.Ref.Value]
	if one == nil || !frame.Ref.Present {
		return // the end of the link follows if it concerns the session
	}
	if !one.verb().again(frame.Err) || one.abandoned.Load() {
		p.finish(one, nil, frame.Err)
		return
	}
	delete(p.inFlight, one.ref)
	one.sent, one.refusal = false, frame.Err
	one.unsure = one.unsure || fateOf(frame.Err)&inDoubt != 0
	p.requeue([]*posting{one})
	p.rest(frame.Err)
}

// rest stops sending for a while. Refusals of one burst count once.
func (p *producer) rest(refusal *wire.Error) {
	if p.rests {
		return
	}
	if p.refusals == 3 {
		p.session.client.notice("the server takes no tasks now and is asked again: " + refusal.Sentence)
	}
	p.resting.Reset(pause(p.refusals, refusal))
	p.refusals++
	p.rests = true
	p.message = nil // was composed before; its posts are still in the queue
}

// requeue puts posts back to where their refs say, in front of younger ones.
func (p *producer) requeue(back []*posting) {
	p.queue = append(p.queue, back...)
	slices.SortFunc(p.queue, byRef)
	p.message = nil
}

func byRef(a, b *posting) int { return cmp.Compare(a.ref, b.ref) }

func (p *producer) up(l *link) {
	p.link, p.lostAt, p.writing, p.message = l, time.Time{}, false, nil
	p.take(l.first)
}

// down sorts what was under way on a lost link: repeat or unknown.
func (p *producer) down() {
	p.session.client.notice("connection lost: " + p.link.err.Error())
	p.link.close()
	p.link, p.lostAt = nil, time.Now()
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
	p.redial.again()
}

// redialled takes the outcome of an attempt. A refusal that will not change,
// or too long a search, ends the session.
func (p *producer) redialled(next dialled) error {
	p.redial.took(next)
	if next.err == nil {
		p.session.client.notice("connected to " + p.session.client.URL() + " again")
		p.up(next.link)
		return nil
	}
	if !p.redial.worthAnother(producerLink, next.err) {
		return next.err
	}
	if limit := p.options.GiveUpAfter; limit > 0 && time.Since(p.lostAt) >= limit {
		return next.err
	}
	p.redial.again()
	return nil
}

// end answers everything that is left and lets the goroutines go.
func (p *producer) end(why error) {
	p.redial.stop()
	if p.link != nil {
		p.link.close()
	}
	p.resting.Stop()
	p.queue = slices.AppendSeq(p.queue, maps.Values(p.inFlight))
	slices.SortFunc(p.queue, byRef)
	for _, one := range p.queue {
		one.done(nil, unanswered(one, why))
	}
	p.session.err = why
	close(p.session.ended)
}
