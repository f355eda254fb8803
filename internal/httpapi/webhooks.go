package httpapi

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"codeq/internal/auth"
	"codeq/internal/callback"
	"codeq/internal/meter"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// webhooksPath is where the endpoints of the tenant are.
const webhooksPath = base + "/admin/webhooks"

func (a *api) webhookResources() []resource {
	one := webhooksPath + "/{name}"
	return []resource{
		{webhooksPath + "/secret", []verb{{method: http.MethodGet, scope: auth.ScopeAdmin, handle: a.getWebhookSecret}}},
		{webhooksPath, []verb{{method: http.MethodGet, scope: auth.ScopeView, handle: a.getWebhooks}}},
		{one, []verb{
			{method: http.MethodGet, scope: auth.ScopeView, handle: a.getWebhook},
			{method: http.MethodPut, scope: auth.ScopeAdmin, handle: parsed(wire.ParseEndpointChange, a.putWebhook)},
			{method: http.MethodDelete, scope: auth.ScopeAdmin, handle: a.deleteWebhook},
		}},
		{one + "/rotate", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(wire.ParseRotation, a.rotateWebhook)}}},
		{one + "/enable", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(parseBare, a.enableWebhook)}}},
		{one + "/test", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(parseBare, a.testWebhook)}}},
		{base + "/admin/tasks/{id}/redeliver", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(parseBare, a.redeliver)}}},
	}
}

// getWebhookSecret answers with the secret that signs the callbacks of tasks with a webhook of
// their own.
func (a *api) getWebhookSecret(c *call) answer {
	return okay(append(wire.AppendQuoted([]byte(`{"secret":`), callback.Secrets(a.o.Store.Secret()).Of(c.who.Tenant)), '}'))
}

// figuresOf shows an endpoint without its secrets.
func (a *api) figuresOf(n *record.Named) wire.EndpointFigures {
	e, _ := n.Endpoint() // one that cannot be read has no URL
	f := wire.EndpointFigures{Name: n.Name, EndpointChange: wire.EndpointChange{Endpoint: e.WithoutSecrets(), Version: n.Version}}
	if f.OldSecretUntilMs <= a.o.NowMs() {
		f.OldSecretUntilMs = 0
	}
	f.Failures, f.FailingSinceMs = a.o.Callbacks.Health(n.Tenant, n.Name)
	return f
}

// getWebhooks lists the endpoints of the tenant by name.
func (a *api) getWebhooks(c *call) answer {
	list := a.o.Engine.Named(c.who.Tenant, record.KindWebhook)
	body := appendList([]byte(`{"webhooks":[`), len(list), func(dst []byte, i int) []byte {
		f := a.figuresOf(&list[i])
		return wire.AppendEndpointFigures(dst, &f)
	})
	return okay(append(body, "]}"...))
}

// webhookOf is the record that the path names, which has no version if there is none.
func (a *api) webhookOf(c *call) record.Named {
	key := record.NamedKey{Tenant: c.who.Tenant, Kind: record.KindWebhook, Name: c.r.PathValue("name")}
	return a.o.Engine.Named(key.Tenant, key.Kind).Get(key)
}

var noWebhook = wire.Refuse(wire.CodeNotFound, "the tenant has no webhook of this name; PUT "+webhooksPath+"/{name} makes one")

// ownWebhook is webhookOf with the endpoint itself. It refuses if there is none, or one that the
// credential may not change.
func (a *api) ownWebhook(c *call) (record.Named, wire.Endpoint, *wire.Error) {
	n := a.webhookOf(c)
	e, ok := n.Endpoint()
	if !ok {
		return n, e, noWebhook
	}
	return n, e, c.checkOutcomes(e.Commands)
}

// checkOutcomes refuses a credential that may not use all commands whose outcomes an endpoint
// gets.
func (c *call) checkOutcomes(commands []string) *wire.Error {
	if len(commands) == 0 {
		commands = []string{wire.AllCommands}
	}
	for _, command := range commands {
		if refusal := c.who.CheckCommand(command); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (a *api) getWebhook(c *call) answer {
	n := a.webhookOf(c)
	if n.Version == 0 {
		return refuse(noWebhook)
	}
	f := a.figuresOf(&n)
	return okay(wire.AppendEndpointFigures(nil, &f))
}

// putWebhook makes an endpoint or replaces what it is. Only the answer that gives it a secret
// shows that.
func (a *api) putWebhook(c *call, change *wire.EndpointChange) answer {
	n, refusal := a.webhookOf(c), c.checkOutcomes(change.Commands)
	had, known := n.Endpoint()
	if known && refusal == nil {
		refusal = c.checkOutcomes(had.Commands)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	logged := change.Endpoint.WithoutSecrets()
	c.record.RawJSON("webhook", wire.AppendEndpoint(nil, &logged))
	if change.Version != 0 && change.Version != n.Version {
		return refuse(wire.Refuse(wire.CodeVersionConflict, fmt.Sprintf(
			"the webhook has version %d, not %d: somebody has changed it; read it and decide again", n.Version, change.Version)))
	}
	next, secret := had, change.Secret
	next.URL, next.Commands, next.Statuses, next.State, next.Reason = change.URL, change.Commands, change.Statuses, cmp.Or(change.State, wire.EndpointEnabled), ""
	if secret == "" && had.Secret == "" {
		secret = newSecret()
	}
	if secret != "" {
		next.Rotate(secret, a.o.NowMs())
	}
	if had.State == wire.EndpointDisabled && next.State == wire.EndpointEnabled {
		return a.enable(c, &n, &next, secret)
	}
	return a.saveWebhook(c, &n, &next, secret)
}

func newSecret() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // documented never to fail
	return wire.SecretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// saveWebhook answers when every shard has the endpoint on disk, with the secret if it is new.
// An endpoint that was changed meanwhile stays. It ignores the context of the request; see ask.
func (a *api) saveWebhook(c *call, had *record.Named, next *wire.Endpoint, secret string) answer {
	now, refusal := a.name(shard.NameChange{
		Key: had.NamedKey, Value: string(wire.AppendEndpoint(nil, next)), IfVersion: had.Version, Most: wire.MaxEndpoints,
	})
	if refusal != nil {
		return refuse(refusal)
	}
	f := a.figuresOf(&now)
	f.Secret = secret
	return okay(wire.AppendEndpointFigures(nil, &f))
}

// name changes a named record.
func (a *api) name(what shard.NameChange) (now record.Named, refusal *wire.Error) {
	done := make(chan struct{})
	a.o.Engine.Name(&shardactor.Naming{What: what, Done: func(is record.Named, why *wire.Error) {
		now, refusal = is, why
		close(done)
	}})
	select {
	case <-done:
		return now, refusal
	case <-a.o.Lost:
		return record.Named{}, notLeaderError
	}
}

// deleteWebhook answers with what the endpoint was. Callbacks that wait for it become dead
// letters when they are next posted.
func (a *api) deleteWebhook(c *call) answer {
	n, _, refusal := a.ownWebhook(c)
	was := a.figuresOf(&n)
	if refusal == nil {
		_, refusal = a.name(shard.NameChange{Key: n.NamedKey, IfVersion: n.Version})
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return okay(wire.AppendEndpointFigures(nil, &was))
}

// rotateWebhook gives an endpoint another secret; the old one signs as well for a while.
func (a *api) rotateWebhook(c *call, secret string) answer {
	n, e, refusal := a.ownWebhook(c)
	if refusal != nil {
		return refuse(refusal)
	}
	if secret == "" {
		secret = newSecret()
	}
	e.Rotate(secret, a.o.NowMs())
	return a.saveWebhook(c, &n, &e, secret)
}

func (a *api) enableWebhook(c *call, _ struct{}) answer {
	n, e, refusal := a.ownWebhook(c)
	if refusal != nil {
		return refuse(refusal)
	}
	e.State, e.Reason = wire.EndpointEnabled, ""
	return a.enable(c, &n, &e, "")
}

// enable has what waited for an endpoint go now. What a full shard or a client that leaves keeps
// from that asks again within two hours.
func (a *api) enable(c *call, n *record.Named, next *wire.Endpoint, secret string) answer {
	ans := a.saveWebhook(c, n, next, secret)
	if ans.refusal != nil {
		return ans
	}
	c.queue = record.QueueKey{Command: wire.CallbackQueue, Tenant: n.Tenant}
	req := bulkRun.absent
	req.State, req.Labels = wire.StateDelayed, wire.Labels(wire.EndpointLabel+"="+n.Name)
	if ran := a.workBulk(c, &req, bulkRun); ran.refusal != nil && !ran.refusal.Code.Retryable() {
		return ran
	}
	return ans
}

// testWebhook posts a signed message to an endpoint and answers with what came of it, also if
// the endpoint is disabled.
func (a *api) testWebhook(c *call, _ struct{}) answer {
	n, e, refusal := a.ownWebhook(c)
	if refusal != nil {
		return refuse(refusal)
	}
	if refusal := a.leaving(); refusal != nil {
		return refuse(refusal)
	}
	sent := wire.AppendTimeMs([]byte(`,"sentAt":`), a.o.NowMs())
	message := append(append(wire.AppendQuoted([]byte(`{"eventType":"codeq.test","webhook":`), n.Name), sent...), '}')
	done := make(chan callback.Answer, 1)
	a.o.Post(&callback.Call{
		Callback: wire.Callback{ID: "test." + strings.ToLower(rand.Text()), URL: e.URL, Body: message},
		Tenant:   n.Tenant, Secrets: e.SecretsAt(a.o.NowMs()), Attempt: 1,
	}, func(came callback.Answer) { done <- came })
	came := <-done
	return okay(wire.AppendEndpointTest(nil, &wire.EndpointTest{Status: came.Status, Problem: came.Problem, Ms: came.Took.Milliseconds()}))
}

// redeliver has a callback posted again: a dead letter is replayed, one that waits goes now, and
// one that has arrived becomes a new task with the same message under the same webhook-id.
func (a *api) redeliver(c *call, _ struct{}) answer {
	task, failed := a.readTask(c)
	switch {
	case task == nil:
		return failed
	case task.Command != wire.CallbackQueue:
		return refuse(wire.Refuse(wire.CodeInvalidArgument, "this task is no callback, it is one of "+task.Command+"; its history names its callbacks"))
	case task.Status == wire.StatusFailed:
		return onTask(a, mailbox.ClassNew, parseVerb, shard.Replay)(c)
	case task.Location == wire.LocationDelayed:
		return onTask(a, mailbox.ClassNew, parseVerb, shard.RunNow)(c)
	case !task.Status.Terminal():
		return c.taskAnswer(task, failed)
	}
	if refusal := a.checkEnqueue(c, &wire.EnqueueRequest{Command: task.Command}); refusal != nil {
		return refuse(refusal)
	}
	ans := a.makeTask(c, shard.Pass{}, &wire.EnqueueRequest{
		Command: task.Command, Payload: task.Payload, MaxAttempts: task.MaxAttempts, Labels: task.Labels,
		TraceParent: task.TraceParent, TraceState: task.TraceState,
	})
	if ans.refusal == nil {
		ans.status = http.StatusOK
	}
	return ans
}

// writeWebhooks writes how many endpoints and targets get nothing.
func (a *api) writeWebhooks(p *meter.Page) {
	counts := map[string]int{}
	for _, n := range a.o.Engine.AllNamed(record.KindWebhook) {
		e, _ := n.Endpoint()
		counts[e.State]++
	}
	p.Family("codeq_webhook_endpoints", meter.Gauge, "Endpoints of all tenants that get outcomes, and that are disabled.")
	for _, state := range []string{wire.EndpointEnabled, wire.EndpointDisabled} {
		p.Put(float64(counts[state]), meter.Label{Name: "state", Value: state})
	}
	all, sick := a.o.Callbacks.Targets()
	p.Family("codeq_targets", meter.Gauge, "Queues of all tenants with a target that gets their tasks, and with one that fails and gets none.")
	p.Put(float64(all-sick), meter.Label{Name: "state", Value: "well"})
	p.Put(float64(sick), meter.Label{Name: "state", Value: "sick"})
}
