package sim

import (
	"slices"
	"strings"

	"codeq/internal/callback"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// Endpoints of tenants get the outcomes of tasks by their commands and statuses. Which ones do is
// decided when a task ends, where an outcome goes when it is posted.

// endpointNames are those of all endpoints, in their order.
var endpointNames = []string{"far", "near"}

// endpointSecret signs what all endpoints get.
const endpointSecret = wire.SecretPrefix + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func endpointKey(tenant, name string) record.NamedKey {
	return record.NamedKey{Tenant: tenant, Kind: record.KindWebhook, Name: name}
}

// calling makes a world whose tenants have endpoints, or whose queues have targets.
func (s *shape) calling(c *chance) {
	kind := c.IntN(3)
	if s.endpoints = kind != 0; s.endpoints {
		s.adds(operation{name: "endpoint", weight: 60, do: (*world).setSomeEndpoint})
	}
	if kind != 1 {
		s.adds(operation{name: "aim", weight: 80, do: (*world).aimSome})
	}
}

// endpointLabels are the labels that callbacks have.
func (s *shape) endpointLabels() (all []wire.Labels) {
	for _, name := range endpointNames {
		if s.endpoints {
			all = append(all, wire.Labels("endpoint="+name))
		}
	}
	return all
}

// recipients are who must get the outcome of a task that has just ended: the empty one is its
// webhook.
func (m *model) recipients(t *task) (names []string) {
	if t.webhook != "" {
		names = append(names, "")
	}
	for _, name := range endpointNames {
		r := m.named[t.shard][endpointKey(t.tenant, name)]
		if r.Value == "" || t.command == hookCommand {
			continue
		}
		e, ok := r.Endpoint()
		if !ok {
			violate("an endpoint is what was set", "%+v", r)
		}
		if e.Statuses != nil && !slices.Contains(e.Statuses, string(t.status)) {
			continue
		}
		if e.Commands == nil || slices.ContainsFunc(e.Commands, t.isOfPattern) {
			names = append(names, name)
		}
	}
	return names
}

func (t *task) isOfPattern(pattern string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, ".*")
	return pattern == wire.AllCommands || pattern == t.command || isPrefix && strings.HasPrefix(t.command, prefix+".")
}

// isOpen reports whether what holds of an endpoint is that version, and gets outcomes.
func (w *world) isOpen(key record.NamedKey, version int64) bool {
	r := w.holds[key]
	e, ok := r.Endpoint()
	return ok && r.Version == version && e.State == wire.EndpointEnabled
}

// goesTo holds a call against what its endpoint is now.
func (w *world) goesTo(c *callback.Call) {
	r := w.holds[endpointKey(c.Tenant, c.Endpoint)]
	if !w.isOpen(r.NamedKey, r.Version) {
		violate("an endpoint that is disabled or removed gets nothing", "%s of %s is %+v and gets %s", c.Endpoint, c.Tenant, r, c.ID)
	}
	if e, _ := r.Endpoint(); c.URL != e.URL || !slices.Equal(c.Secrets, []string{e.Secret}) {
		violate("a callback goes where its endpoint is now", "%s goes to %s with %v, the endpoint is %+v", c.ID, c.URL, c.Secrets, e)
	}
}

// asksToDisable is the worker that asks for it, and hears what became of that.
func (w *world) asksToDisable(n *shardactor.Naming) {
	key, asking, done := n.What.Key, w.hooks.asking, n.Done
	asking[key] = n.What.IfVersion
	n.Done = func(now record.Named, refusal *wire.Error) {
		delete(asking, key)
		done(now, refusal)
	}
	w.begin(n)
}

// setSomeEndpoint is an admin who makes, changes or removes an endpoint.
func (w *world) setSomeEndpoint() {
	c := w.chance
	key := endpointKey(pick(c, w.shape.tenants), pick(c, endpointNames))
	w.setEndpoint(key, &wire.Endpoint{
		URL: pick(c, []string{"https://e.org/a", "https://e.org/b?q=2"}), Secret: endpointSecret,
		State:    pick(c, []string{wire.EndpointEnabled, wire.EndpointEnabled, wire.EndpointEnabled, wire.EndpointDisabled, ""}),
		Commands: pick(c, [][]string{nil, {wire.AllCommands}, {"a"}, {"c.*", "b"}, {"codeq.*"}, {"a", "c"}}),
		Statuses: pick(c, [][]string{nil, nil, {"COMPLETED"}, {"FAILED", "CANCELLED"}}),
	})
}

// setEndpoint replaces an endpoint, or removes it if the new one has no state. What waits for one
// that is enabled goes now.
func (w *world) setEndpoint(key record.NamedKey, e *wire.Endpoint) {
	value := ""
	if e.State != "" {
		value = string(wire.AppendEndpoint(nil, e))
	}
	w.setNamed(key, value, func(record.Named) {
		if e.State == wire.EndpointEnabled {
			w.callBackNow(func(t *task) bool { return t.endpoint == key.Name && t.tenant == key.Tenant })
		}
	})
}

// callBackNow has callbacks go that wait.
func (w *world) callBackNow(which func(t *task) bool) {
	for _, t := range w.model.all {
		if t.command != hookCommand || t.place != wire.LocationDelayed || !which(t) {
			continue
		}
		call := func(to shard.Asker) shard.Message {
			return &shard.Manage{Do: shard.RunNow, Asker: to, By: "ops", Tenant: t.tenant, TaskID: t.id}
		}
		(&request{world: w, call: call, about: t.id}).post()
	}
}

// openEndpoints enables every endpoint, and has all callbacks go, of which some wait for a day.
func (w *world) openEndpoints() {
	eachName(func(key record.NamedKey) {
		r := w.holds[key]
		if e, ok := r.Endpoint(); ok && key.Kind == record.KindWebhook && e.State == wire.EndpointDisabled {
			e.State = wire.EndpointEnabled
			w.setEndpoint(key, &e)
			w.settle()
		}
	})
	if w.hooks != nil {
		w.callBackNow((*task).open)
		w.settle()
	}
}
