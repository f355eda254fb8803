package shard

import (
	"strconv"

	"codeq/record"
	"codeq/wire"
)

// A task with a webhook that ends makes a callback: a task of wire.CallbackQueue, of the
// same tenant and in the same shard and batch. So does one whose outcome an endpoint of the
// tenant wants, one for each. They are made as often as the task ends, have what to post as
// their payload, and make no callbacks of their own. No limit refuses them.

// endpoint is one of a tenant.
type endpoint struct {
	name string
	wire.Endpoint
}

// recipient is who gets an outcome: the webhook of the task, or an endpoint. id is that of the
// callback.
type recipient struct {
	id            wire.TaskID
	url, endpoint string
}

// setEndpoints follows the named records of a tenant.
func (t *tenant) setEndpoints(name string) {
	t.endpoints = nil
	for _, n := range t.named.Of(name, record.KindWebhook) {
		if e, ok := n.Endpoint(); ok {
			t.endpoints = append(t.endpoints, endpoint{n.Name, e})
		}
	}
}

// noteCallbacks draws the ids of the callbacks of a task that ends so, and writes them into
// the history of that task.
func (s *Shard) noteCallbacks(q *queue, t *record.Task, status wire.Status) (to []recipient) {
	if q.system {
		return nil
	}
	if t.Webhook != "" {
		to = append(to, recipient{url: t.Webhook})
	}
	for i := range q.tenant.endpoints {
		if e := &q.tenant.endpoints[i]; e.Wants(t.Command, status) {
			to = append(to, recipient{endpoint: e.name})
		}
	}
	for i := range to {
		var chance [10]byte
		// ChaCha8 documents that Read never fails.
		_, _ = s.random.Read(chance[:])
		to[i].id = wire.NewTaskID(s.now, chance).MovedTo(s.shard, s.shards)
		t.Handled = true
		s.span.Batch().AddHistory(t.ID, wire.HistoryLine{ToMs: s.now, Cause: wire.HistoryCallback, Callback: to[i].id})
	}
	return to
}

// makeCallbacks makes the callbacks of a task that has just ended with that event. What they
// post is fixed now: every attempt posts the same bytes under the same id.
func (s *Shard) makeCallbacks(to []recipient, t *record.Task, result *wire.ResultRecord, event uint64) {
	o := wire.Outcome{Command: t.Command, ResultRecord: *result}
	if len(o.Result) > wire.MaxCallbackResultBytes {
		o.Result, o.ResultURL = nil, s.publicURL+"/v1/codeq/tasks/"+t.ID.String()+"/result"
	}
	k := wire.Callback{ID: t.ID.String() + "." + strconv.FormatUint(event, 10), Body: wire.AppendOutcome(nil, &o)}
	q := s.queueOf(record.QueueKey{Command: wire.CallbackQueue, Tenant: t.Tenant})
	for _, r := range to {
		made := &record.Task{
			ID: r.id, Command: q.key.Command, Tenant: q.key.Tenant, MaxAttempts: q.settings.MaxAttempts, CreatedAtMs: s.now,
			TraceParent: s.traceAfter(t, t.Deliveries), TraceState: t.TraceState,
		}
		if k.URL, k.Endpoint = r.url, r.endpoint; r.endpoint != "" {
			made.Labels = wire.Labels(wire.EndpointLabel + "=" + r.endpoint)
			s.span.Batch().PutLabels(made)
		}
		s.span.Batch().GivePayload(made, wire.AppendCallback(nil, &k))
		s.transition(made, s.placeAt(s.now, record.CauseEnqueue))
	}
}

// turnsOf names the tenant in whose turns a queue takes part. The queues of the server have
// turns of their own, so that no subscriber of all commands of their tenant takes from them.
func turnsOf(key record.QueueKey) string {
	if wire.IsSystemCommand(key.Command) {
		return key.Tenant + "\x00" // no tenant has this name
	}
	return key.Tenant
}
