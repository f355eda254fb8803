package httpapi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

const (
	// bulkChunk is how many tasks are worked on before the next are looked for: few
	// enough that producers hardly wait for them.
	bulkChunk = 256
	// bulkMostRead is how many are looked at for one chunk, bulkMostFiltered for one
	// request with a filter, and bulkMostBytes how many bytes of payloads are read for
	// a chunk.
	bulkMostRead     = 20_000
	bulkMostFiltered = 100_000
	bulkMostBytes    = 32 << 20
	// bulkSample is how many of the tasks that a dry run has found are in its answer.
	bulkSample = 5

	// bulkList marks the cursors of these requests, which are not those of a list;
	// what is below it has a number for each kind of work.
	bulkList = store.ListState(-1)
)

// bulkKind is something that is done with many tasks.
type bulkKind struct {
	kind wire.BulkKind
	// done is the member that counts them, list marks the cursors.
	done string
	list store.ListState
	// act is the message that does it with a task that was found in the state of the work.
	act func(to shardactor.Asker, w *bulkWork, k record.TimedKey) shardactor.Message
}

// bulkStates are the states that each word means, in the order in which a task goes
// through them: one that moves on meanwhile is met where it goes to.
var bulkStates = map[string][]store.ListState{
	"":                   {store.ListDead},
	wire.StateDelayed:    {store.ListDelayed},
	wire.StateReady:      {store.ListReady},
	wire.StateInProgress: {store.ListInProgress},
	wire.StateWaiting:    {store.ListDelayed, store.ListReady},
	wire.StateOpen:       {store.ListDelayed, store.ListReady, store.ListInProgress},
}

// bulkPlaces are where the tasks of each state are.
var bulkPlaces = map[store.ListState]wire.Location{
	store.ListDelayed: wire.LocationDelayed, store.ListReady: wire.LocationPending, store.ListInProgress: wire.LocationInProgress,
}

// bulkReader reads what a request is about. It is called once its path is in order.
type bulkReader func() (*wire.BulkRequest, *wire.Error)

// bulkBody reads that from the body, with what a body means that does not say.
func (c *call) bulkBody(kind wire.BulkKind, absent wire.BulkRequest) bulkReader {
	return func() (*wire.BulkRequest, *wire.Error) {
		body, refusal := c.readBody()
		if refusal != nil {
			return nil, refusal
		}
		return wire.ParseBulkRequest(body, kind, absent)
	}
}

// bulkWork is one request to do something with many tasks.
type bulkWork struct {
	kind   *bulkKind
	req    *wire.BulkRequest
	states []store.ListState
	// at is the state that is worked on.
	at     int
	query  store.FindQuery
	sample []wire.TaskID
	done   int
	read   int
	refuse *wire.Error
}

// workBulk does something with the tasks of a queue that were there when the work
// began, in the order of their states and in each as they are found, chunk by
// chunk, up to the limit. It stops when the client leaves or the shards have no
// room; whoever asks again with the cursor goes on where it stopped. The work
// begins with the request that has no cursor, and the cursor has that time, so that
// a letter which dies again meanwhile, or a task that is posted only then, is not
// part of it.
func (a *api) workBulk(c *call, read bulkReader, kind *bulkKind) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := read()
	if refusal != nil {
		return refuse(refusal)
	}
	w := &bulkWork{req: req, kind: kind, states: bulkStates[req.State]}
	w.query = store.FindQuery{
		Queue: q, UntilMs: a.o.NowMs(), Filter: store.ListFilter{Causes: req.Causes, TaskFilter: req.TaskFilter},
	}
	if kind.kind == wire.BulkMove {
		w.query.NotPriority = &req.ToPriority // those are there already
	}
	if req.Cursor == "" {
		// What is replayed dies again in a later millisecond than that of the bound.
		time.Sleep(time.Millisecond)
	} else if refusal = w.goOn(req.Cursor); refusal != nil {
		return refuse(refusal)
	}
	beganMs := w.query.UntilMs
	if req.BeforeMs > 0 {
		w.query.UntilMs = min(w.query.UntilMs, req.BeforeMs-1)
	}
	err := a.workStates(c, w)
	if errors.Is(err, store.ErrListPlace) {
		return refuse(badCursor())
	}
	if err != nil {
		return a.failedRead(c, err)
	}
	if req.DryRun {
		c.record = a.recordOf(c, zerolog.DebugLevel) // it changes nothing
	}
	c.record.Int("done", w.done).RawJSON("request", wire.AppendBulkRequest(nil, kind.kind, req, ""))
	if w.refuse != nil && w.done == 0 {
		return refuse(w.refuse)
	}
	body, failed := a.bulkAnswer(c, w)
	if body == nil {
		return failed
	}
	if w.refuse != nil || w.at < len(w.states) {
		began := binary.BigEndian.AppendUint64([]byte{byte(w.at)}, uint64(beganMs))
		body = appendCursorMember(body, q, kind.list, append([]store.ListPlace{began}, w.query.After...))
	}
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// bulkAnswer is the answer but for its cursor and its end. Without a body the answer
// says why.
func (a *api) bulkAnswer(c *call, w *bulkWork) ([]byte, answer) {
	if w.req.DryRun {
		body := fmt.Appendf(nil, `{"dryRun":true,"matched":%d,"sample":[`, w.done)
		var tasks []*wire.Task
		for _, id := range w.sample {
			if task, err := a.o.Store.ReadTask(c.who.Tenant, id); err == nil && task != nil {
				tasks = append(tasks, task) // others cannot be read, or are gone by now
			}
		}
		if err := a.allDurable(c); err != nil {
			return nil, a.failedRead(c, err)
		}
		a.lend(c, tasks...)
		return append(appendTasks(body, tasks), ']'), answer{}
	}
	body := fmt.Appendf(nil, `{"%s":%d`, w.kind.done, w.done)
	if w.req.State != "" {
		return body, answer{}
	}
	figures, failed := a.readQueue(c, w.query.Queue)
	if figures == nil {
		return nil, failed
	}
	body = fmt.Appendf(body, `,"remaining":%d`, figures.Dead)
	if failed := figures.DeadBy[wire.DeadFailed]; failed > 0 {
		body = fmt.Appendf(body, `,"remainingFailed":%d`, failed)
	}
	return body, answer{}
}

// goOn reads a cursor: the state it has come to, when the work began, which is not in
// the future whoever made the cursor, and the places, none where nothing is behind
// it yet.
func (w *bulkWork) goOn(cursor string) *wire.Error {
	places, refusal := decodeCursor(cursor, w.query.Queue, w.kind.list)
	if refusal != nil {
		return refusal
	}
	if len(places) == 0 || len(places[0]) != 9 || int(places[0][0]) >= len(w.states) {
		return badCursor()
	}
	w.at = int(places[0][0])
	w.query.UntilMs = min(w.query.UntilMs, int64(binary.BigEndian.Uint64(places[0][1:])&math.MaxInt64))
	if len(places) > 1 {
		w.query.After = places[1:]
	}
	return nil
}

// workStates goes through the states until nothing is left or the request has had
// enough. Where it stopped is in the work: in which state and, in the query, behind
// which places of it.
func (a *api) workStates(c *call, w *bulkWork) error {
	for ; w.at < len(w.states); w.at++ {
		w.query.State = w.states[w.at]
		over, err := a.workChunks(c, w)
		if err != nil || !over {
			return err
		}
	}
	return nil
}

// workChunks works on one state, and reports whether nothing of it is left. Otherwise
// the query has where it stopped, which is before the chunk of which a shard refused
// a part. While the shards work on a chunk, the next one is looked for.
func (a *api) workChunks(c *call, w *bulkWork) (over bool, err error) {
	var ahead *store.FindPage
	for !w.hasEnough(c, 0, 0) {
		page := ahead
		if page == nil {
			if page, err = a.findChunk(w, w.query.After, 0); err != nil {
				return false, err
			}
		}
		worked := a.work(w, page.Found)
		if ahead = nil; page.Places != nil && !w.hasEnough(c, len(page.Found), page.Read) {
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

// hasEnough reports whether the request ends here, with a chunk that is worked on now
// and of which so many were found among those that were looked at.
func (w *bulkWork) hasEnough(c *call, found, read int) bool {
	filtered := w.query.Filter != (store.ListFilter{})
	return w.done+found >= w.req.Limit || c.r.Context().Err() != nil || filtered && w.read+read >= bulkMostFiltered
}

// findChunk finds the next chunk behind places, beside so many that were found before.
func (a *api) findChunk(w *bulkWork, after []store.ListPlace, found int) (*store.FindPage, error) {
	q := w.query
	q.After, q.Limit, q.MostRead, q.MostBytes = after, min(bulkChunk, w.req.Limit-w.done-found), bulkMostRead, bulkMostBytes
	return a.o.Store.Find(&q)
}

// work begins to do it with a chunk. The function that it returns waits for that and
// counts it; in a dry run it only counts.
func (a *api) work(w *bulkWork, found []record.TimedKey) (worked func() int) {
	if len(found) > 0 && !w.req.DryRun {
		wait := a.actOn(w, found)
		return func() int { return w.count(wait()) }
	}
	for _, k := range found[:min(len(found), bulkSample-len(w.sample))] {
		w.sample = append(w.sample, k.ID)
	}
	return func() int { return len(found) }
}

// count counts what was done. A task that was somewhere else by then is no matter.
func (w *bulkWork) count(effects []shardactor.Effect) (done int) {
	for _, effect := range effects {
		refused, ok := effect.(*shardactor.Refused)
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

// actOn posts to each shard at once what belongs to it. The function that it returns
// waits for all the effects; like enqueue it does not look at the request's context.
func (a *api) actOn(w *bulkWork, found []record.TimedKey) (wait func() []shardactor.Effect) {
	answered := newGather(len(found))
	posts := make([]batchPost, a.o.Engine.Shards())
	for place, k := range found {
		message := w.kind.act(shardactor.Asker{Sink: answered, Ref: uint64(place)}, w, k)
		posts[a.o.Engine.ShardOf(k.ID)].add(place, message, 0)
	}
	a.postEach(posts, mailbox.ClassNew, answered)
	return answered.wait
}
