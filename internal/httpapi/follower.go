package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/meter"
	"codeq/internal/peer"
	"codeq/store"
	"codeq/wire"
)

// headerLeader tells clients where the node is that leads.
const headerLeader = "Codeq-Leader"

var (
	leaderUnknown   = wire.Refuse(wire.CodeNotLeader, "this node knows no leader of the cluster; try again in a second")
	askedForLeading = wire.Refuse(wire.CodeNotLeader, "this node follows the leader of the cluster; it passes requests on")
)

type passedKey struct{}

// Passed is a request that another node has passed to this one: that node's guard has
// checked it.
func Passed(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), passedKey{}, true))
}

func wasPassed(r *http.Request) bool { return r.Context().Value(passedKey{}) != nil }

// FollowerOptions are the options of NewFollower. All are required but Pages and WriteMetrics.
type FollowerOptions struct {
	Log     zerolog.Logger
	Version string
	Guard   *Guard
	Pages   Pages
	// Pass passes a request to the leader, or says which handler is to answer it here.
	Pass func(w http.ResponseWriter, r *http.Request) (got peer.Passage, here http.Handler)
	// Ready reports whether a leader is known.
	Ready func() bool
	// WriteMetrics adds the figures of the server to a page of metrics.
	WriteMetrics func(p *meter.Page)
	// Auth says who may have a backup of Store and read it.
	Auth  auth.Authenticator
	Store *store.Store
	// Age is how old what Store has may be.
	Age func() time.Duration
}

// NewFollower makes the handler of a node that does not lead: it answers health, readiness,
// version, metrics, backup and what TakesStale, has the pages, and passes everything else to the leader. Any
// goroutine may call NewFollower and the handler.
func NewFollower(o *FollowerOptions) http.Handler {
	a := &api{o: Options{Log: o.Log, Version: o.Version, Guard: o.Guard, Site: Site{Pages: o.Pages}, Ready: o.Ready, WriteMetrics: o.WriteMetrics, Auth: o.Auth, Store: o.Store}, mux: http.NewServeMux()}
	a.fallback = func(c *call) answer { return a.passOn(c, o.Pass) }
	a.mount(append(a.stale(o), []resource{
		a.backups(),
		{"/healthz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: getHealth}}},
		{"/readyz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: a.followerReady}}},
		{"/version", []verb{{method: http.MethodGet, public: true, handle: a.getVersion}}},
		{"/metrics", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: func(c *call) answer {
			c.w.Header().Set("Content-Type", meter.ContentType)
			return okay(a.scrape.page(a.writeOwnMetrics))
		}}}},
	}...))
	return a
}

// passOn has the leader answer a request.
func (a *api) passOn(c *call, pass func(w http.ResponseWriter, r *http.Request) (peer.Passage, http.Handler)) answer {
	clear(c.w.Header()) // the leader sets them
	c.r.Header.Set(headerRequestID, c.requestID)
	got, here := pass(c.w, c.r)
	if here != nil {
		return answer{handedOver: true, here: here}
	}
	if got.Refusal != nil {
		addAlways(c.w.Header(), c.r)
		c.w.Header().Set(headerRequestID, c.requestID)
		return refuse(got.Refusal)
	}
	return answer{status: got.Status, handedOver: true, abort: got.Broken}
}

// followerReady answers whether requests reach the leader; with ?leader, that this node is not
// the one.
func (a *api) followerReady(c *call) answer {
	switch {
	case !a.o.Ready():
		return refuse(leaderUnknown)
	case c.r.URL.Query().Has("leader"):
		return refuse(askedForLeading)
	}
	return okay([]byte(`{"status":"ready","role":"follower"}`))
}
