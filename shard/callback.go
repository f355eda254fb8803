package shard

import (
	"strconv"

	"codeq/record"
	"codeq/wire"
)

// A task with a webhook that ends makes a callback: a task of wire.CallbackQueue, of the
// same tenant and in the same shard and batch. It is made as often as the task ends, has
// what to post as its payload, and makes no callback of its own. No limit refuses it.

// noteCallback draws the id of the callback of a task that ends, and writes it into the
// history of that task.
func (s *Shard) noteCallback(t *record.Task) wire.TaskID {
	var chance [10]byte
	// ChaCha8 documents that Read never fails.
	_, _ = s.random.Read(chance[:])
	id := wire.NewTaskID(s.now, chance).MovedTo(s.shard, s.shards)
	t.Handled = true
	s.span.Batch().AddHistory(t.ID, wire.HistoryLine{ToMs: s.now, Cause: wire.HistoryCallback, Callback: id})
	return id
}

// makeCallback makes the callback of a task that has just ended with that event. What it
// posts is fixed now: every attempt posts the same bytes under the same id.
func (s *Shard) makeCallback(id wire.TaskID, t *record.Task, result *wire.ResultRecord, event uint64) {
	o := wire.Outcome{Command: t.Command, ResultRecord: *result}
	if len(o.Result) > wire.MaxCallbackResultBytes {
		o.Result, o.ResultURL = nil, s.publicURL+"/v1/codeq/tasks/"+t.ID.String()+"/result"
	}
	q := s.queueOf(record.QueueKey{Command: wire.CallbackQueue, Tenant: t.Tenant})
	made := &record.Task{
		ID: id, Command: q.key.Command, Tenant: q.key.Tenant, MaxAttempts: q.settings.MaxAttempts, CreatedAtMs: s.now,
		TraceParent: s.traceAfter(t, t.Deliveries), TraceState: t.TraceState,
	}
	s.span.Batch().GivePayload(made, wire.AppendCallback(nil, &wire.Callback{
		ID: t.ID.String() + "." + strconv.FormatUint(event, 10), URL: t.Webhook, Body: wire.AppendOutcome(nil, &o),
	}))
	s.transition(made, s.placeAt(s.now, record.CauseEnqueue))
}

// turnsOf names the tenant in whose turns a queue takes part. The queues of the server have
// turns of their own, so that no subscriber of all commands of their tenant takes from them.
func turnsOf(key record.QueueKey) string {
	if key.Command == wire.CallbackQueue {
		return key.Tenant + "\x00" // no tenant has this name
	}
	return key.Tenant
}
