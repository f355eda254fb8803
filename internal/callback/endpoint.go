package callback

import (
	"maps"
	"strings"
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
	// maxEndpoints is how many endpoints of a tenant are known. Those beyond it that nothing
	// is in flight to are forgotten, with their failures.
	maxEndpoints = 1024
)

// endpoint is a URL without its query.
type endpoint struct {
	url      string
	inFlight int
	held     []*delivery
	// failures counts those in a row. An endpoint is sick since sickAtMs, may have a callback
	// again at probeAtMs, and has one while probing.
	failures            int
	sickAtMs, probeAtMs int64
	probing             bool
}

// admission is whether an endpoint gets another callback now.
type admission int

const (
	admitted admission = iota
	full
	sick
)

func (t *tenant) endpointOf(url string) *endpoint {
	url, _, _ = strings.Cut(url, "?")
	e := t.endpoints[url]
	if e == nil {
		if len(t.endpoints) >= maxEndpoints {
			maps.DeleteFunc(t.endpoints, func(_ string, e *endpoint) bool { return e.inFlight == 0 })
		}
		e = &endpoint{url: url}
		t.endpoints[url] = e
	}
	return e
}

// forget drops a healthy endpoint that has nothing in flight.
func (t *tenant) forget(e *endpoint) {
	if e.inFlight == 0 && e.failures == 0 {
		delete(t.endpoints, e.url)
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
func (e *endpoint) note(failed bool, nowMs int64) {
	e.probing = false
	if !failed {
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
