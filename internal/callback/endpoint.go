package callback

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

const (
	// perEndpoint is how many callbacks are in flight to one endpoint.
	perEndpoint = 8
	// holdForMs is how long a callback is held for a place of its endpoint; its lease is
	// longer than that and a call together.
	holdForMs = 5_000
	// sickAfter failures in a row make an endpoint sick. It then gets one callback every
	// probeEveryMs, and the others wait, at most mostWaitMs longer than for the next of those.
	sickAfter    = 5
	probeEveryMs = 30_000
	mostWaitMs   = 300_000
	// disableAfterMs is how long calls of a named endpoint fail before it is disabled. A callback
	// to a disabled one asks again after askAgainMs, unless whoever enables it has it run.
	disableAfterMs = 86_400_000
	askAgainMs     = 3_600_000
	// maxEndpoints is how many endpoints of a tenant are known. Those beyond it that nothing
	// is in flight to are forgotten, with their failures.
	maxEndpoints = 1024
)

// endpoint is a URL without its query, or a named endpoint of the tenant.
type endpoint struct {
	key      string
	inFlight int
	held     []*delivery
	// failures counts those in a row. An endpoint is sick since sickAtMs, may have a callback
	// again at probeAtMs, and has one while probing.
	failures            int
	sickAtMs, probeAtMs int64
	probing             bool
	// failingSinceMs is when the first call failed after which none has succeeded, 0 for none.
	failingSinceMs int64
	// version is that of a named endpoint to which all this belongs.
	version int64
}

// admission is whether an endpoint gets another callback now.
type admission int

const (
	admitted admission = iota
	full
	sick
)

// keyOf is that of a named endpoint; the others are URLs, which begin otherwise.
func keyOf(name string) string { return "endpoint " + name }

func (t *queue) endpointOf(k *wire.Callback) *endpoint {
	key, _, _ := strings.Cut(k.URL, "?")
	if k.Endpoint != "" {
		key = keyOf(k.Endpoint)
	}
	e := t.endpoints[key]
	if e == nil {
		if len(t.endpoints) >= maxEndpoints {
			maps.DeleteFunc(t.endpoints, func(_ string, e *endpoint) bool { return e.inFlight == 0 })
		}
		e = &endpoint{key: key}
		t.endpoints[key] = e
	}
	return e
}

// forget drops a healthy endpoint that has nothing in flight.
func (t *queue) forget(e *endpoint) {
	if e.inFlight == 0 && e.failingSinceMs == 0 {
		delete(t.endpoints, e.key)
	}
}

func (e *endpoint) isSick() bool { return e.failures >= sickAfter }

// admits takes the place of a probe, if the endpoint is sick and it is time for one.
func (e *endpoint) admits(nowMs int64) admission {
	switch {
	case e.isSick() && (e.probing || nowMs < e.probeAtMs):
		return sick
	case e.isSick():
		e.probing = true
		return admitted
	case e.inFlight >= perEndpoint:
		return full
	}
	return admitted
}

// note counts what a call came to.
func (e *endpoint) note(a Answer, nowMs int64) {
	e.probing = false
	switch {
	case a.succeeded():
		e.failingSinceMs = 0
	case e.failingSinceMs == 0:
		e.failingSinceMs = nowMs
	}
	e.count(a.isSick(), nowMs)
}

// count counts a call that makes the endpoint sick, or begins anew after one that does not.
func (e *endpoint) count(sick bool, nowMs int64) {
	if !sick {
		e.failures = 0
		return
	}
	if e.failures++; e.failures == sickAfter {
		e.sickAtMs = nowMs
	}
	e.probeAtMs = nowMs + probeEveryMs
}

// waitMs is how long a callback waits for a sick endpoint: until the next probe, and the
// longer behind it the longer the endpoint is sick, so that not all come back at once.
func (e *endpoint) waitMs(nowMs int64, random float64) int64 {
	spread := min(max(nowMs-e.sickAtMs, probeEveryMs), mostWaitMs)
	return max(e.probeAtMs-nowMs, 1000) + int64(random*float64(spread))
}

// isGone reports whether a named endpoint is to be disabled after this answer.
func (e *endpoint) isGone(a Answer, nowMs int64) bool {
	return a.Status == http.StatusGone || e.failures >= sickAfter && nowMs-e.failingSinceMs >= disableAfterMs
}

// follow begins anew with a named endpoint that somebody has changed.
func (e *endpoint) follow(version int64) {
	if e.version != version {
		e.failures, e.failingSinceMs, e.version = 0, 0, version
	}
}

// named is the record of the endpoint of a callback.
func (d *delivery) named() record.Named {
	key := record.NamedKey{Tenant: d.queue.key.Tenant, Kind: record.KindWebhook, Name: d.call.Endpoint}
	return d.queue.worker.engine.Named(key.Tenant, key.Kind).Get(key)
}

// address finds where a callback to a named endpoint goes now. Without an endpoint it is a
// dead letter, and it waits for one that is disabled.
func (d *delivery) address() bool {
	w, n := d.queue.worker, d.named()
	if d.version != 0 && d.version == n.Version {
		return true
	}
	e, ok := n.Endpoint()
	switch {
	case !ok:
		d.fail("the endpoint " + d.call.Endpoint + " has been removed")
		return false
	case e.State == wire.EndpointDisabled:
		d.putOff(askAgainMs + int64(w.o.Random()*askAgainMs))
		return false
	}
	d.call.URL, d.call.Secrets, d.version = e.URL, e.SecretsAt(w.o.NowMs()), n.Version
	d.endpoint.follow(n.Version)
	return true
}

// disable has the endpoint of a callback get nothing until somebody enables it. Another
// change, which may have mended it, comes first, and so does this one if it is asked for again.
func (d *delivery) disable(a Answer) {
	w, n := d.queue.worker, d.named()
	e, ok := n.Endpoint()
	if !ok || n.Version != d.endpoint.version {
		return
	}
	since := time.UnixMilli(d.endpoint.failingSinceMs).UTC().Format(time.RFC3339)
	e.State, e.Reason = wire.EndpointDisabled, "no call has succeeded since "+since
	if a.Status == http.StatusGone {
		e.Reason = "it answered 410, which means that it is gone"
	}
	w.engine.Name(&shardactor.Naming{
		What: shard.NameChange{Key: n.NamedKey, Value: string(wire.AppendEndpoint(nil, &e)), IfVersion: n.Version},
		Done: func(_ record.Named, refusal *wire.Error) {
			if refusal == nil {
				w.o.Disabled(n.Tenant, n.Name, e.Reason)
			}
		},
	})
}

// Health is how many calls in a row a named endpoint failed in a way that makes it sick, and
// since when none has succeeded, in Unix milliseconds; 0 and 0 for one that is well.
func (w *Worker) Health(tenant, name string) (failures int, failingSinceMs int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tenants[tenant]; t != nil && t.endpoints[keyOf(name)] != nil {
		e := t.endpoints[keyOf(name)]
		return e.failures, e.failingSinceMs
	}
	return 0, 0
}
