package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// workHTTP is a worker over HTTP, until the end.
func (c *client) workHTTP() {
	for c.over.Err() == nil {
		held := c.claim()
		if len(held) > 0 && c.one(2) {
			c.finishTogether(held)
			continue
		}
		for _, d := range held {
			c.treat(httpHands{c.api}, d)
		}
	}
}

// claim asks for one task or for some, waits a little or not at all, and breaks
// its request off now and then. What it gets is noted as delivered since it
// asked.
func (c *client) claim() (held []delivery) {
	r := wire.ClaimRequest{Commands: []string{command}, LeaseSeconds: 1 + c.chance.IntN(2), WaitSeconds: c.chance.IntN(2),
		WorkerID: fmt.Sprint("client ", c.number), Count: 1}
	path := "/tasks/claim"
	if c.one(2) {
		path, r.Count = "/tasks/claim/batch", 2+c.chance.IntN(4)
	}
	ctx, cancel := c.ask()
	defer cancel()
	if !c.calm.Load() && c.one(12) {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, time.Duration(c.chance.IntN(20))*time.Millisecond)
		defer leave()
	}
	since := c.history.now()
	answer, err := c.api.Do(ctx, "POST", path, string(wire.AppendClaimRequest(nil, &r)))
	if out := c.answered(err); err != nil {
		if out.unknown || putOff(out.code) {
			c.pause(redialAfter)
		} else {
			c.t.Errorf("a claim is refused: %v", err)
		}
		return nil
	}
	for _, body := range c.claimed(answer, r.Count) {
		task, token, err := wire.ParseClaimed(body)
		if err != nil {
			c.t.Errorf("a claim is answered with %s: %v", body, err)
			continue
		}
		d := delivery{label: labelOf(task.Payload), ref: wire.TaskRef{TaskID: task.ID, Token: token}, number: task.Deliveries}
		c.history.leased(d.label, token, task.LeaseUntilMs)
		c.history.note(c.number, d.label, since, input{verb: grant, by: byHTTP, token: token, delivery: d.number},
			output{id: task.ID, attempts: task.Attempts})
		held = append(held, d)
	}
	return held
}

// claimed are the tasks in the answer to a claim of so many.
func (c *client) claimed(answer *blackbox.Answer, count int) []json.RawMessage {
	switch {
	case answer.Status == 204:
		return nil
	case count == 1:
		return []json.RawMessage{answer.Body}
	}
	var page struct{ Tasks []json.RawMessage }
	if err := json.Unmarshal(answer.Body, &page); err != nil || len(page.Tasks) == 0 || len(page.Tasks) > count {
		c.t.Errorf("a claim of %d tasks is answered with %s (%v)", count, answer.Body, err)
	}
	return page.Tasks
}

// finishTogether ends deliveries in one request, now and then one of them twice.
// What was not answered is said again alone.
func (c *client) finishTogether(held []delivery) {
	said := held
	if c.one(5) {
		said = append(said, held[0])
	}
	items := make([]wire.ResultItem, len(said))
	inputs := make([]input, len(said))
	for i, d := range said {
		items[i] = wire.ResultItem{TaskID: d.ref.TaskID, Holder: wire.Holder{Token: d.ref.Token}}
		items[i].Request, inputs[i] = c.outcome(d, wire.StatusCompleted)
		inputs[i].by = inBatch
	}
	ctx, cancel := c.ask()
	defer cancel()
	call := c.history.now()
	answer, err := c.api.Do(ctx, "POST", "/tasks/batch/results", string(wire.AppendResultBatch(nil, items)))
	outs := c.answeredEach(answer, err, len(said), func(item []byte) (output, error) {
		var parts struct{ Result json.RawMessage }
		if err := json.Unmarshal(item, &parts); err != nil {
			return output{}, err
		}
		_, err := wire.ParseResultRecord(parts.Result)
		return output{}, err
	})
	for i, d := range said {
		c.history.note(c.number, d.label, call, inputs[i], outs[i])
		switch {
		case outs[i].unknown || putOff(outs[i].code):
			c.finish(httpHands{c.api}, d, wire.StatusCompleted)
		case outs[i].code == "":
			c.ended.Add(1)
		}
	}
}

// answeredEach makes an output of each item of a batch: what read makes of it,
// or its refusal, or that of the whole.
func (c *client) answeredEach(answer *blackbox.Answer, err error, n int, read func(item []byte) (output, error)) []output {
	outs := make([]output, n)
	whole := c.answered(err)
	for i := range outs {
		outs[i] = whole
	}
	if err != nil {
		return outs
	}
	var page struct{ Results []json.RawMessage }
	if err := json.Unmarshal(answer.Body, &page); err != nil || len(page.Results) != n {
		c.t.Errorf("a batch of %d is answered with %s (%v)", n, answer.Body, err)
		return outs
	}
	for i, item := range page.Results {
		var refused struct{ Code wire.Code }
		err := json.Unmarshal(item, &refused)
		if err == nil && refused.Code == "" {
			outs[i], err = read(item)
		} else if err == nil {
			outs[i].code = refused.Code
		}
		if err != nil {
			c.t.Errorf("an item of a batch is answered with %s: %v", item, err)
		}
	}
	return outs
}
