package client

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"codeq/wire"
)

// Subscription is what a watch shows: a QueueWatch, a TaskWatch, an EventWatch, a SessionWatch, a
// PageWatch or a ServerWatch.
type Subscription interface {
	subscribe() *wire.WatchSubscribe
}

// QueueWatch shows the figures of queues.
type QueueWatch struct {
	// Commands are names of queues, or prefixes that end with ".*"; none are all queues.
	Commands []string
	// Every is the least time between two News, from 250 ms to 10 s; 0 is 1 s.
	Every time.Duration
}

// TaskWatch shows one task and each of its transitions.
type TaskWatch struct{ TaskID wire.TaskID }

// EventWatch shows the transitions of tasks from now on.
type EventWatch struct {
	// Commands are those of a QueueWatch. Causes leave out events of other causes; none
	// are all.
	Commands, Causes []string
	// MaxPerSecond bounds the events in a second, up to 1,000; 0 is 200. A Gap says how
	// many were left out.
	MaxPerSecond int
}

// SessionWatch shows the sessions of workers and producers.
type SessionWatch struct{}

// PageWatch shows the beginning of a list of tasks, without payloads. Its rows never move: News
// says how many tasks came.
type PageWatch struct {
	Command string
	// State is ready, delayed, inProgress, dlq or done.
	State string
	// Limit bounds the rows, up to 200; 0 is 50.
	Limit int
}

// ServerWatch shows the figures of the server and what needs a person, once a second.
type ServerWatch struct{}

func (p PageWatch) subscribe() *wire.WatchSubscribe {
	return &wire.WatchSubscribe{Kind: wire.WatchPage, Command: p.Command, State: p.State, Limit: p.Limit}
}

func (ServerWatch) subscribe() *wire.WatchSubscribe {
	return &wire.WatchSubscribe{Kind: wire.WatchServer}
}

func (q QueueWatch) subscribe() *wire.WatchSubscribe {
	return &wire.WatchSubscribe{Kind: wire.WatchQueues, Commands: q.Commands, EveryMs: int(q.Every.Milliseconds())}
}

func (t TaskWatch) subscribe() *wire.WatchSubscribe {
	return &wire.WatchSubscribe{Kind: wire.WatchTask, TaskID: t.TaskID}
}

func (e EventWatch) subscribe() *wire.WatchSubscribe {
	return &wire.WatchSubscribe{Kind: wire.WatchEvents, Commands: e.Commands, Causes: e.Causes, MaxPerSecond: e.MaxPerSecond}
}

func (SessionWatch) subscribe() *wire.WatchSubscribe {
	return &wire.WatchSubscribe{Kind: wire.WatchWorkers}
}

// WatchedQueue is a queue with its figures. A command "*" is the sum of the queues that the
// server has no room to count one by one.
type WatchedQueue struct {
	TenantID, Command string
	wire.Figures
}

// GapReplaced is the reason of a gap behind which the server has another data directory:
// nobody knows what was missed. The other reasons are those of wire.
const GapReplaced = "replaced"

// News is what a watch tells about one of its subscriptions. Of the members behind Of only
// those of its kind are set.
type News struct {
	// Of is the number of the subscription: its place among the arguments of Watch.
	Of int
	// Queues are all queues of a QueueWatch, by tenant and command.
	Queues []WatchedQueue
	// Sessions are all sessions of a SessionWatch, the oldest first.
	Sessions []wire.SessionFigures
	// Tasks are the rows of a PageWatch, in the order of the list when it was read. Above counts
	// the tasks that came: those that a new page would have before the last row.
	Tasks []*wire.Task
	Above int64
	// Server and Needs are those of a ServerWatch, the worst need first.
	Server *wire.ServerFigures
	Needs  []wire.Need
	// Task is the task of a TaskWatch as it is now.
	Task *wire.Task
	// Event is a transition, for an EventWatch or a TaskWatch.
	Event *wire.WatchEvent
	// Progress and Output are what the worker of a TaskWatch has reported. After a reconnect they
	// go on behind the last one that was shown.
	Progress *wire.WatchProgress
	Output   *wire.WatchOutput
	// Gap says that events were left out, or output of a TaskWatch, and why.
	Gap *wire.WatchGap
}

// Watch tells what happens on the server. It opens one WebSocket for all subscriptions when
// the iteration begins, reconnects by itself and ends with the iteration or with ctx. The last
// pair has the error that ended it: that of ctx, or a *wire.Error of a refusal that will not
// change.
//
// Nothing is missed in silence. After a reconnect an EventWatch continues behind the last event
// that it has shown, and a Gap tells what the server does not have any more; the other
// subscriptions show everything anew. A body that takes long gets fewer News of a QueueWatch,
// and Gaps of an EventWatch. The body runs on the goroutine of the iteration.
func (c *Client) Watch(ctx context.Context, subscriptions ...Subscription) iter.Seq2[News, error] {
	return func(yield func(News, error) bool) {
		w := &watchLoop{loop: newLoop(c, c.newRedialer(watchDialect, "")), yield: yield, ctx: ctx}
		for i, s := range subscriptions {
			v := &view{ask: s.subscribe()}
			v.ask.ID, v.ask.Ref = strconv.Itoa(i), wire.Ref{Value: int64(i), Present: true}
			w.views = append(w.views, v)
		}
		first, err := w.redial.first(ctx, waitForever)
		if err == nil {
			w.stop = ctx.Done()
			w.run(w, first)
			err = w.err
		}
		w.redial.stop()
		if !w.left {
			yield(News{}, err)
		}
	}
}

// view is one subscription and what it shows.
type view struct {
	ask *wire.WatchSubscribe
	// whole is false from the first part of a snapshot to its last.
	whole    bool
	queues   map[uint32]wire.Figures // by slot
	sessions map[wire.SessionID]wire.SessionFigures
	tasks    []*wire.Task
	above    int64
	// reported is the number of the last report that was shown.
	reported uint64
}

// empty forgets what is shown, and awaits a snapshot.
func (v *view) empty() {
	v.whole, v.queues, v.sessions, v.tasks = true, map[uint32]wire.Figures{}, map[wire.SessionID]wire.SessionFigures{}, nil
}

// watchLoop is the loop of a watch and its state. It runs on the goroutine of the iteration.
type watchLoop struct {
	loop
	ctx   context.Context
	yield func(News, error) bool
	views []*view

	left    bool  // the iteration is over
	err     error // why the watch ends, nil while it does not
	pending []int // the views to ask for on this link
	names   map[uint32]wire.SlotName
	// creationID is the data directory that the positions of the views are of.
	creationID string
}

func (w *watchLoop) step(now time.Time) (time.Time, bool) {
	w.pauseOver(now)
	if w.pauseEnd.IsZero() && w.mayCompose() {
		n := w.compose(len(w.pending), func(i int) wire.ClientFrame { return w.views[w.pending[i]].ask })
		w.pending = w.pending[n:]
	}
	return time.Time{}, w.over()
}

func (w *watchLoop) over() bool { return w.left || w.err != nil }

func (w *watchLoop) drained() {}
func (w *watchLoop) stopped() { w.err = context.Cause(w.ctx) }
func (w *watchLoop) handed()  {}
func (w *watchLoop) written() {}

// connected asks for everything, from the position on that was reached.
func (w *watchLoop) connected() {
	w.pending, w.names = nil, map[uint32]wire.SlotName{}
	present := w.link.present
	replaced := w.creationID != "" && w.creationID != present.CreationID
	w.creationID = present.CreationID
	for i, v := range w.views {
		w.pending = append(w.pending, i)
		v.empty()
		if v.ask.Kind != wire.WatchEvents || v.ask.After != nil && !replaced {
			continue
		}
		v.ask.After, v.ask.CreationID = slices.Clone(present.Positions), present.CreationID
		if replaced {
			w.tell(News{Of: i, Gap: &wire.WatchGap{ID: v.ask.ID, Reason: GapReplaced}})
		}
	}
}

func (w *watchLoop) disconnected(error) {}

// dialFailed ends the watch after a refusal that will not change.
func (w *watchLoop) dialFailed(err error) bool {
	if !w.redial.worthAnother(producerLink, err) {
		w.err = err
	}
	return w.err == nil
}

func (w *watchLoop) receive(frame wire.ServerFrame) {
	switch frame := frame.(type) {
	case *wire.OK:
		w.succeeded()
	case *wire.WatchError:
		w.refused(frame)
	case *wire.WatchNames:
		w.named(frame)
	case *wire.WatchSnapshot:
		if v, i := w.view(frame.ID); v != nil {
			if v.whole {
				v.empty()
			}
			v.whole = !frame.More
			w.changed(v, i, &frame.WatchState)
		}
	case *wire.WatchTick:
		if v, i := w.view(frame.ID); v != nil {
			w.changed(v, i, &frame.WatchState)
		}
	case *wire.WatchEvent:
		if v, i := w.view(frame.ID); v != nil {
			v.reached(frame.Shard, frame.Number)
			w.tell(News{Of: i, Event: frame})
		}
	case *wire.WatchProgress:
		if v, i := w.view(frame.ID); v != nil && frame.Number > v.reported {
			v.reported = frame.Number
			w.tell(News{Of: i, Progress: frame})
		}
	case *wire.WatchOutput:
		if v, i := w.view(frame.ID); v != nil && frame.Number > v.reported {
			v.reported = frame.Number
			w.tell(News{Of: i, Output: frame})
		}
	case *wire.WatchGap:
		if v, i := w.view(frame.ID); v != nil {
			v.reached(frame.Shard, frame.To)
			w.tell(News{Of: i, Gap: frame})
		}
	case *wire.WatchMark:
		for shard, n := range frame.Positions {
			for _, v := range w.views {
				v.reached(shard, n)
			}
		}
	}
}

// view is the subscription of an id, nil if there is none.
func (w *watchLoop) view(id string) (*view, int) {
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(w.views) {
		return nil, 0
	}
	return w.views[i], i
}

// refused asks again for what is refused for now, and ends the watch at any other refusal.
func (w *watchLoop) refused(frame *wire.WatchError) {
	if frame.ID == "" && frame.Ref.Present {
		frame.ID = strconv.FormatInt(frame.Ref.Value, 10)
	}
	v, i := w.view(frame.ID)
	switch {
	case v == nil: // the end of the link follows if it concerns the socket
	case harmlessFrame.again(frame.Err):
		w.pending = append(w.pending, i)
		w.pause(frame.Err, "the server takes no subscription now")
	case !w.over():
		w.err = frame.Err
	}
}

func (w *watchLoop) named(frame *wire.WatchNames) {
	for _, name := range frame.Queues {
		w.names[name.Slot] = name
		if name.Command != "" {
			continue
		}
		for _, v := range w.views {
			delete(v.queues, name.Slot)
		}
	}
}

// changed adds to what a view shows, and tells it when it is whole.
func (w *watchLoop) changed(v *view, i int, state *wire.WatchState) {
	for _, row := range state.Queues {
		v.queues[row.Slot] = row.Figures
	}
	for _, one := range state.Sessions {
		v.sessions[one.ID] = one
	}
	for _, t := range state.Tasks {
		if i := slices.IndexFunc(v.tasks, func(old *wire.Task) bool { return old.ID == t.ID }); i >= 0 {
			v.tasks[i] = t
		} else {
			v.tasks = append(v.tasks, t)
		}
	}
	if state.Above != nil {
		v.above = *state.Above
	}
	for _, left := range state.Left {
		v.tasks = slices.DeleteFunc(v.tasks, func(t *wire.Task) bool { return t.ID.String() == left })
		maps.DeleteFunc(v.sessions, func(id wire.SessionID, _ wire.SessionFigures) bool { return id.String() == left })
	}
	if !v.whole {
		return
	}
	news := News{
		Of: i, Task: state.Task, Sessions: slices.Collect(maps.Values(v.sessions)), Tasks: slices.Clone(v.tasks), Above: v.above,
		Server: state.Server, Needs: state.Needs,
	}
	for slot, figures := range v.queues {
		if name := w.names[slot]; name.Command != "" {
			news.Queues = append(news.Queues, WatchedQueue{name.Tenant, name.Command, figures})
		}
	}
	slices.SortFunc(news.Queues, func(a, b WatchedQueue) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Command, b.Command))
	})
	slices.SortFunc(news.Sessions, func(a, b wire.SessionFigures) int {
		return cmp.Or(cmp.Compare(a.ConnectedAtMs, b.ConnectedAtMs), cmp.Compare(a.WorkerID, b.WorkerID))
	})
	w.tell(news)
}

// reached notes the last event of a shard that was shown or passed over.
func (v *view) reached(shard int, n uint64) {
	if shard < len(v.ask.After) && v.ask.After[shard] < n {
		v.ask.After[shard] = n
	}
}

// tell hands news to the body of the iteration, once it was not left.
func (w *watchLoop) tell(news News) {
	w.left = w.left || w.err == nil && !w.yield(news, nil)
}
