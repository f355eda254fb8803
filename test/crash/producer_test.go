package crash

import (
	"encoding/json"
	"strconv"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// produceBatches makes tasks in batches until there are enough; a key comes
// twice in one batch now and then.
func (c *client) produceBatches() {
	for {
		var batch []wire.EnqueueRequest
		for range 2 + c.chance.IntN(6) {
			n := c.begun.Add(1)
			if n > c.size.tasks {
				break
			}
			r := request(strconv.FormatInt(n, 10), c.one(2))
			batch = append(batch, r)
			if r.IdempotencyKey != "" && c.one(3) {
				batch = append(batch, r)
			}
		}
		if len(batch) == 0 {
			return
		}
		for len(batch) > 0 && c.over.Err() == nil {
			batch = c.postBatch(batch)
		}
	}
}

// postBatch posts a batch and returns what is to be posted again: what the
// server put off, and of what has a key all that had no answer, and now and then
// some that had.
func (c *client) postBatch(batch []wire.EnqueueRequest) (again []wire.EnqueueRequest) {
	ctx, cancel := c.ask()
	defer cancel()
	call := c.history.now()
	answer, err := c.api.Do(ctx, "POST", "/tasks/batch", string(wire.AppendBatchRequest(nil, batch)))
	outs := c.answeredEach(answer, err, len(batch), func(item []byte) (output, error) {
		var parts struct{ Task json.RawMessage }
		if err := json.Unmarshal(item, &parts); err != nil {
			return output{}, err
		}
		task, err := wire.ParseTask(parts.Task)
		if err != nil {
			return output{}, err
		}
		return output{id: task.ID, quiet: true}, nil
	})
	for i, r := range batch {
		c.history.note(c.number, labelOf(r.Payload), call, input{verb: enqueue, by: inBatch}, outs[i])
		if putOff(outs[i].code) || r.IdempotencyKey != "" && (outs[i].unknown || c.one(8)) {
			again = append(again, r)
		}
	}
	if err != nil {
		c.pause(redialAfter)
	}
	return again
}

// callOff cancels tasks that became known of late, over HTTP and over sessions,
// until nobody disturbs any more.
func (c *client) callOff() {
	p := c.dial()
	for p != nil && !c.calm.Load() {
		c.pause(time.Duration(50+c.chance.IntN(150)) * time.Millisecond)
		k, ok := c.history.recent(c.chance.Float64())
		if !ok {
			continue
		}
		if c.one(2) {
			c.cancel(k, byHTTP, func() error {
				ctx, done := c.ask()
				defer done()
				_, err := c.api.Do(ctx, "POST", "/tasks/"+k.id.String()+"/cancel", "")
				return err
			})
			continue
		}
		if out := c.cancel(k, bySession, func() error { return c.cancelOver(p, k) }); out.unknown {
			p.Close()
			p = c.dial()
		}
	}
	if p != nil {
		p.Close()
	}
}

func (c *client) cancelOver(p *blackbox.Peer, k known) error {
	ctx, done := c.ask()
	defer done()
	_, err := p.Ask(ctx, func(ref wire.Ref) wire.ClientFrame { return &wire.Cancel{Ref: ref, TaskID: k.id} })
	return err
}

func (c *client) cancel(k known, by way, say func() error) output {
	call := c.history.now()
	out := c.answered(say())
	c.history.note(c.number, k.label, call, input{verb: callOff, by: by}, out)
	if out.code == "" && !out.unknown {
		c.ended.Add(1)
	}
	return out
}
