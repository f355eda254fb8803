package sim

import (
	"slices"

	"codeq/wire"
)

// Moments of a worker's life that chance alone seldom puts together: each needs
// two things to happen in one short span, in one order.

// returnSome is a worker that loses its socket, unnoticed, and comes back at
// once: its session goes on over the newer one before the server hears of the
// end of the older.
func (w *world) returnSome() {
	cl := w.someWorker()
	if cl == nil || cl.key == "" {
		return
	}
	cl.drop(true)
	cl.connect()
	for range 1 + w.chance.IntN(3) {
		w.listen(cl)
		w.runSome()
		if w.chance.oneIn(2) {
			w.sync()
		}
	}
}

// leaveSome is a worker that wants no more while shards hand tasks out to it,
// and while each has its own time to hear of that.
func (w *world) leaveSome() {
	cl := w.someWorker()
	if cl == nil {
		return
	}
	if cl.window == 0 {
		// It has been here, and works on.
		cl.say(cl.resize(pick(w.chance, []int{2, 4, 10})))
		w.listen(cl)
		return
	}
	w.sync()
	// The larger window makes a grant to this client possible, whoever else is idle.
	cl.say(cl.resize(len(cl.inHand) + 2))
	w.listen(cl)
	for range 2 + w.chance.IntN(3) {
		if r := w.newRequest(); w.tenantOf(&r) == cl.tenant {
			(&request{world: w, body: r}).post()
		}
	}
	w.runSome()
	cl.say(cl.resize(0))
	for range w.shape.shards {
		w.listen(cl)
		w.runSome()
	}
	w.listen(cl)
}

// breakSome is a worker that breaks over what it is given, again and again: it
// goes before it has said that anything arrived, and comes back. What it broke
// over has its turn again later, beside others that work on.
func (w *world) breakSome() {
	cl := w.someWorker()
	if cl == nil {
		return
	}
	for range 3 + w.chance.IntN(3) {
		cl.drop(false)
		cl.connect()
		w.listen(cl)
		for range 2 * w.shape.shards {
			w.runSome()
		}
		w.sync()
		cl.conn.work()
	}
	w.nowMs += int64(pick(w.chance, []int{0, 0, 300, 3000, 6000}))
}

// repeatSome is a worker that says how it ended a task, is not sure whether it
// was heard, and says so over and over. A mailbox may have a place for the first
// message and none for the second.
func (w *world) repeatSome() {
	first := w.chance.IntN(len(w.clients))
	for i := range w.clients {
		cl := w.clients[(first+i)%len(w.clients)]
		at := slices.IndexFunc(cl.inHand, func(h held) bool { return !h.answered })
		if at < 0 || !cl.isHeard() {
			continue
		}
		cl.repeats(cl.inHand[at].ref)
		return
	}
}

func (cl *client) repeats(ref wire.TaskRef) {
	c := cl.world.chance
	for _, times := range []int{1, pick(c, []int{1, 2, 13, 13})} {
		frames := make([]wire.ClientFrame, 0, times)
		for range times {
			frames = append(frames, cl.ending(ref, firstEnding+c.IntN(verbs-firstEnding)))
		}
		cl.say(frames...)
	}
	cl.world.listen(cl)
}

// someWorker is a worker that is heard, nil if the one that was drawn is not.
func (w *world) someWorker() *client {
	cl := pick(w.chance, w.clients)
	if cl.produces || !cl.isHeard() {
		return nil
	}
	return cl
}

// isHeard says that the server knows the client, and that it reads.
func (cl *client) isHeard() bool {
	return cl.conn != nil && cl.welcome && !cl.conn.over && !cl.conn.stuck
}

// listen lets the server take what a client has said, as far as it reads on.
func (w *world) listen(cl *client) {
	c := cl.conn
	for n := len(c.toServer); n > 0; n-- {
		c.read()
	}
	c.work()
}
