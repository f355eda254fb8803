package httpapi

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/rs/zerolog"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

const (
	// bulkChunk is how many tasks are posted before the next chunk is read: so few that the
	// requests of producers wait for less than a round.
	bulkChunk = 256
	// bulkMostRead bounds the tasks that are read for one chunk, bulkMostFiltered those for
	// one request with a filter, and bulkMostBytes the bytes of payloads that are read for
	// one chunk.
	bulkMostRead     = 20_000
	bulkMostFiltered = 100_000
	bulkMostBytes    = 32 << 20
	// bulkSample bounds the tasks in the answer of a dry run.
	bulkSample = 5
)

// bulkStates are the states that each word means, in the order in which a task passes
// through them: a task that moves meanwhile is found in its next state.
var bulkStates = map[string][]store.ListState{
	"":                   {store.ListDead},
	wire.StateDelayed:    {store.ListDelayed},
	wire.StateReady:      {store.ListLimited, store.ListReady},
	wire.StateInProgress: {store.ListInProgress},
	wire.StateWaiting:    {store.ListDelayed, store.ListLimited, store.ListReady},
	wire.StateOpen:       {store.ListDelayed, store.ListLimited, store.ListReady, store.ListInProgress},
}

// bulkLocations are the locations of the tasks in each state.
var bulkLocations = map[store.ListState]wire.Location{
	store.ListDelayed: wire.LocationDelayed, store.ListLimited: wire.LocationPending, store.ListReady: wire.LocationPending,
	store.ListInProgress: wire.LocationInProgress,
}

// bulkWork is one request for bulk work. It belongs to the goroutine of the request.
type bulkWork struct {
	call   *call
	kind   *bulkKind
	req    *wire.BulkRequest
	states []store.ListState
	// at is the index of the current state; query has the position in that state.
	at     int
	query  store.ListQuery
	sample []wire.TaskID
	done   int
	read   int
	refuse *wire.Error
}

// workBulk does something with the tasks of a queue, state by state and chunk by chunk, up
// to the limit. It stops when the client leaves or a shard is full; a request with the
// cursor goes on there. The work began with the request that had no cursor, and the cursor
// has that time: a task that was enqueued later, or became a dead letter later, is not part
// of it.
func (a *api) workBulk(c *call, req *wire.BulkRequest, kind *bulkKind) answer {
	w := &bulkWork{call: c, req: req, kind: kind, states: bulkStates[req.State]}
	w.query = store.ListQuery{
		Queue: c.queue, UntilMs: a.o.NowMs(), Filter: store.ListFilter{Causes: req.Causes, TaskFilter: req.TaskFilter},
	}
	if kind.kind == wire.BulkMove {
		w.query.NotPriority = &req.ToPriority // tasks with that priority need no move
	}
	if req.Cursor == "" {
		// A replayed task that becomes a dead letter again does so in a later millisecond than
		// that of the bound.
		time.Sleep(time.Millisecond)
	} else if refusal := w.resume(req.Cursor); refusal != nil {
		return refuse(refusal)
	}
	beganMs := w.query.UntilMs
	if req.BeforeMs > 0 {
		w.query.UntilMs = min(w.query.UntilMs, req.BeforeMs-1)
	}
	if err := a.workStates(w); err != nil {
		return a.failedRead(c, err)
	}
	if req.DryRun {
		c.record = a.recordOf(c, zerolog.DebugLevel) // it changes nothing
	}
	c.record.Int("done", w.done).RawJSON("request", wire.AppendBulkRequest(nil, kind.kind, req, ""))
	if w.refuse != nil && w.done == 0 {
		return refuse(w.refuse)
	}
	body, failed := a.bulkBody(w)
	if body == nil {
		return failed
	}
	if w.refuse != nil || w.at < len(w.states) {
		began := binary.BigEndian.AppendUint64([]byte{byte(w.at)}, uint64(beganMs))
		body = appendCursorMember(body, encodeCursor(c.queue, kind.list, append([]store.ListPlace{began}, w.query.After...)))
	}
	return okay(append(body, '}'))
}

// bulkBody is the body without its cursor and its last brace. Without a body the answer
// says why.
func (a *api) bulkBody(w *bulkWork) ([]byte, answer) {
	c := w.call
	if w.req.DryRun {
		body := fmt.Appendf(nil, `{"dryRun":true,"matched":%d,"sample":[`, w.done)
		var tasks []*wire.Task
		for _, id := range w.sample {
			if task, err := a.o.Store.ReadTask(c.who.Tenant, id); err == nil && task != nil {
				tasks = append(tasks, task) // others cannot be read, or were removed meanwhile
			}
		}
		if err := a.durable(c, nil); err != nil {
			return nil, a.failedRead(c, err)
		}
		a.addLeases(c, tasks...)
		return append(c.appendTasks(body, tasks), ']'), answer{}
	}
	body := fmt.Appendf(nil, `{"%s":%d`, w.kind.done, w.done)
	if w.req.State != "" {
		return body, answer{}
	}
	figures, failed := a.readQueue(c)
	if figures == nil {
		return nil, failed
	}
	body = fmt.Appendf(body, `,"remaining":%d`, figures.Dead)
	if failed := figures.DeadBy[wire.DeadFailed]; failed > 0 {
		body = fmt.Appendf(body, `,"remainingFailed":%d`, failed)
	}
	return body, answer{}
}

// resume reads a cursor: the current state, the time at which the work began, and the
// position in that state, if there is one. A client can make up a cursor, so a time in the
// future becomes now.
func (w *bulkWork) resume(cursor string) *wire.Error {
	places, refusal := decodeCursor(cursor, w.query.Queue, w.kind.list)
	if refusal != nil {
		return refusal
	}
	if len(places) == 0 || len(places[0]) != 9 || int(places[0][0]) >= len(w.states) {
		return badCursor
	}
	w.at = int(places[0][0])
	w.query.UntilMs = min(w.query.UntilMs, int64(binary.BigEndian.Uint64(places[0][1:])&math.MaxInt64))
	if len(places) > 1 {
		w.query.After = places[1:]
	}
	return nil
}

// workStates works on the states in order until nothing is left or the request ends. at and
// query have the position then.
func (a *api) workStates(w *bulkWork) error {
	for ; w.at < len(w.states); w.at++ {
		w.query.State = w.states[w.at]
		over, err := a.workChunks(w)
		if err != nil || !over {
			return err
		}
	}
	return nil
}

// workChunks works on one state, and reports whether nothing of it is left. Otherwise the
// query has the position: before a chunk of which a shard refused a part. It reads the next
// chunk while the shards work on the current one.
func (a *api) workChunks(w *bulkWork) (over bool, err error) {
	var ahead *store.FindPage
	for !w.ends(0, 0) {
		page := ahead
		if page == nil {
			if page, err = a.findChunk(w, w.query.After, 0); err != nil {
				return false, err
			}
		}
		worked := a.work(w, page.Found)
		if ahead = nil; page.Places != nil && !w.ends(len(page.Found), page.Read) {
			ahead, err = a.findChunk(w, page.Places, len(page.Found))
		}
		if w.done += worked(); err != nil || w.refuse != nil {
			return false, err
		}
		w.read += page.Read
		if w.query.After = page.Places; w.query.After == nil {
			return true, nil
		}
	}
	return false, nil
}

// ends reports whether the request ends after the current chunk, for which read tasks were
// read and found were posted.
func (w *bulkWork) ends(found, read int) bool {
	filtered := w.query.Filter != (store.ListFilter{})
	return w.done+found >= w.req.Limit || w.call.r.Context().Err() != nil || filtered && w.read+read >= bulkMostFiltered
}

// findChunk reads the next chunk after a position. found is the size of the chunk that the
// shards work on.
func (a *api) findChunk(w *bulkWork, after []store.ListPlace, found int) (*store.FindPage, error) {
	q := w.query
	q.After, q.Limit, q.MostRead, q.MostBytes = after, min(bulkChunk, w.req.Limit-w.done-found), bulkMostRead, bulkMostBytes
	return a.o.Store.Find(&q)
}

// work posts a chunk to its shards. The returned function waits for their effects and counts
// the tasks; in a dry run it only counts. It ignores the context of the request; see ask.
func (a *api) work(w *bulkWork, found []record.TimedKey) (worked func() int) {
	if len(found) > 0 && !w.req.DryRun {
		answered := a.newGather(len(found))
		posts := make([]batchPost, a.o.Engine.Shards())
		for i, k := range found {
			message := w.call.manage(shard.Asker{Sink: answered, Ref: shard.Ref(i)}, w.kind.do, k.ID)
			message.Only, message.EndedAtMs, message.Priority = bulkLocations[w.query.State], k.AtMs, w.req.ToPriority
			posts[a.o.Engine.ShardOf(k.ID)].add(i, message, 0)
		}
		a.postAll(posts, mailbox.ClassNew, answered)
		return func() int { return w.count(answered.wait()) }
	}
	for _, k := range found[:min(len(found), bulkSample-len(w.sample))] {
		w.sample = append(w.sample, k.ID)
	}
	return func() int { return len(found) }
}

// count counts the tasks that were changed. A task that has moved meanwhile is not counted
// and is no error.
func (w *bulkWork) count(effects []shard.Effect) (done int) {
	for _, effect := range effects {
		refused, ok := effect.(*shard.Refused)
		if !ok {
			done++
			continue
		}
		if refused.Err.Code.Retryable() {
			w.refuse = refused.Err
		}
	}
	return done
}
