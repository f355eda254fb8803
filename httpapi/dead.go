package httpapi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

const (
	// deadChunk is how many dead letters are replayed or purged before the next
	// are looked for: few enough that producers hardly wait for them.
	deadChunk = 256
	// deadMostRead is how many are looked at for one chunk, deadMostFiltered for
	// one request with a filter.
	deadMostRead     = 5_000
	deadMostFiltered = 100_000

	// deadOldestFirst marks the cursors of requests that begin with the oldest,
	// which are not those of a list.
	deadOldestFirst = store.ListState(-1)
)

// deadWork is one request to do something with many dead letters.
type deadWork struct {
	req    *wire.DeadRequest
	query  store.DeadQuery
	act    func(letters []store.TimedKey) []shardactor.Effect
	done   int
	read   int
	refuse *wire.Error
}

// workDead does something with the dead letters of a queue that had ended when
// the work began, oldest first, chunk by chunk, up to the limit. It stops when the
// client leaves or the shards have no room; whoever asks again with the cursor goes
// on where it stopped. The work begins with the request that has no cursor, and the
// cursor has that time, so that a letter which dies again meanwhile, or dies only
// then, is not part of it. The member named done counts.
func (a *api) workDead(c *call, req *wire.DeadRequest, done string, act func([]store.TimedKey) []shardactor.Effect) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	w := &deadWork{req: req, act: act}
	w.query = store.DeadQuery{
		Queue: q, UntilMs: a.o.NowMs(), Filter: store.ListFilter{Worker: req.Worker, ErrorPart: req.ErrorPart, Causes: req.Causes},
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
	err := a.workChunks(c, w)
	if errors.Is(err, store.ErrListPlace) {
		return refuse(badCursor())
	}
	if err != nil {
		return a.failedRead(c, err)
	}
	c.record.Int("done", w.done).Str("worker", req.Worker).Str("error", req.ErrorPart).Int64("beforeMs", req.BeforeMs)
	if w.refuse != nil && w.done == 0 {
		return refuse(w.refuse)
	}
	figures, failed := a.readQueue(c, q)
	if figures == nil {
		return failed
	}
	body := fmt.Appendf(nil, `{"%s":%d,"remaining":%d`, done, w.done, figures.Dead)
	if failed := figures.DeadBy[wire.DeadFailed]; failed > 0 {
		body = fmt.Appendf(body, `,"remainingFailed":%d`, failed)
	}
	if w.refuse != nil || w.query.After != nil {
		began := binary.BigEndian.AppendUint64(nil, uint64(beganMs))
		body = appendCursorMember(body, q, deadOldestFirst, append([]store.ListPlace{began}, w.query.After...))
	}
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// goOn reads a cursor: when the work began, which is not in the future whoever
// made the cursor, and the places, none where nothing is behind it yet.
func (w *deadWork) goOn(cursor string) *wire.Error {
	places, refusal := decodeCursor(cursor, w.query.Queue, deadOldestFirst)
	if refusal != nil {
		return refusal
	}
	if len(places) == 0 || len(places[0]) != 8 {
		return badCursor()
	}
	w.query.UntilMs = min(w.query.UntilMs, int64(binary.BigEndian.Uint64(places[0])&math.MaxInt64))
	if len(places) > 1 {
		w.query.After = places[1:]
	}
	return nil
}

// workChunks goes on until nothing is left or the request has had enough. Where
// it stopped is in the query: nil at the end of all, and before the chunk of which
// a shard refused a part.
func (a *api) workChunks(c *call, w *deadWork) error {
	for w.done < w.req.Limit && c.r.Context().Err() == nil {
		if w.query.Filter != (store.ListFilter{}) && w.read >= deadMostFiltered {
			return nil
		}
		w.query.Limit, w.query.MostRead = min(deadChunk, w.req.Limit-w.done), deadMostRead
		page, err := a.o.Store.DeadLetters(&w.query)
		if err != nil {
			return err
		}
		if len(page.Letters) > 0 {
			w.count(w.act(page.Letters))
		}
		if w.refuse != nil {
			return nil
		}
		w.read += page.Read
		if w.query.After = page.Places; w.query.After == nil {
			return nil
		}
	}
	return nil
}

// count counts what was done. A letter that was somewhere else by then is no
// matter.
func (w *deadWork) count(effects []shardactor.Effect) {
	for _, effect := range effects {
		refused, ok := effect.(*shardactor.Refused)
		if !ok {
			w.done++
			continue
		}
		if refused.Err.Code.Retryable() {
			w.refuse = refused.Err
		}
	}
}
