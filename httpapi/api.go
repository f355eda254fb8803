package httpapi

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"codeq/auth"
	"codeq/internal/meter"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// base is the path below which everything but health and version lies.
const base = "/v1/codeq"

// Options are what the API stands on. All are required but WallMs, Settings, Ready,
// Draining, Refused, AnswerBytes and WriteMetrics.
type Options struct {
	Engine   *shardactor.Engine
	Store    *store.Store
	Auth     auth.Authenticator
	Sessions Sessions
	// Guard is asked before everything else.
	Guard *Guard
	// NowMs is the clock of the engine, in Unix milliseconds.
	NowMs func() int64
	// WallMs is the clock of the machine, in Unix milliseconds; nil reads it.
	WallMs func() int64
	Log    zerolog.Logger
	// Version and Durability are shown as they are.
	Version    string
	Durability string
	// Settings is the answer of GET /v1/codeq/admin/config; nil is a list of none.
	Settings []byte
	// Ready reports whether work is taken; nil means always.
	Ready func() bool
	// RequireLeaseToken refuses calls about a delivery without its token.
	RequireLeaseToken bool
	// Draining is closed when the server begins to stop: requests that wait
	// for a result are then answered instead of holding it up.
	Draining <-chan struct{}
	// Refused is told of requests that are refused because of who sent them; nil
	// tells nobody.
	Refused func(auth.Attempt)
	// AnswerBytes is how much of large answers all requests together may hold for clients
	// that have not taken it; 0 is any amount.
	AnswerBytes int64
	// WriteMetrics adds what only the server knows to a page of metrics.
	WriteMetrics func(p *meter.Page)
}

// Sessions are those of the server. Any goroutine.
type Sessions interface {
	// ServeHTTP takes over requests for GET /v1/codeq/session, credential and
	// all.
	http.Handler
	// Count is how many are open, of all tenants.
	Count() int
	// List is one page of those of a tenant, by id, behind the id after; more
	// says that there are further ones.
	List(tenant string, after wire.SessionID, limit int) (page []wire.SessionFigures, more bool)
}

// api is the handler that New returns.
type api struct {
	o   Options
	mux *http.ServeMux
	// fallback answers for every path that nothing is mounted at.
	fallback func(c *call) answer
	nowhere  *route

	requests meter.Set
	scrape   scrape
	turns    claimTurns
	// held is the sum of what calls hold.
	held atomic.Int64
}

// verb is one method of a resource. public ones need no principal; noHead
// keeps a GET from answering HEAD as well. query names the parameters there are;
// anyQuery takes whatever a probe or a scraper adds. holds is what an answer that can be
// large counts for until it is made; echoes is one that is as large as its body.
type verb struct {
	method   string
	scope    string
	public   bool
	noHead   bool
	query    []string
	anyQuery bool
	holds    int64
	echoes   bool
	handle   func(c *call) answer
}

// isAdmin reports a verb by which somebody changes what belongs to others, or copies
// it, which is the GET that has no HEAD.
func (v *verb) isAdmin() bool {
	return v.scope == auth.ScopeOperator && v.noHead || v.scope == auth.ScopeAdmin && v.method != http.MethodGet
}

// resource is everything that lives at one path.
type resource struct {
	pattern string
	verbs   []verb
}

// New makes the handler of the whole API. It may be called from any goroutine
// and the handler serves any number at once.
func New(o Options) http.Handler {
	if o.Settings == nil {
		o.Settings = []byte(`{"settings":[]}`)
	}
	if o.WallMs == nil {
		o.WallMs = func() int64 { return time.Now().UnixMilli() }
	}
	a := &api{o: o, mux: http.NewServeMux(), fallback: func(*call) answer { return notFound() }}
	a.mount(a.resources())
	return a
}

// resources is every path of the API. A verb without a scope is for anybody of
// the tenant.
func (a *api) resources() []resource {
	return []resource{
		{base + "/tasks", []verb{{method: http.MethodPost, scope: auth.ScopeProducer, holds: anyBytes, echoes: true, handle: a.postTask}}},
		{base + "/tasks/batch", []verb{{method: http.MethodPost, scope: auth.ScopeProducer, holds: anyBytes, echoes: true, handle: a.postBatch}}},
		{base + "/tasks/claim", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, holds: anyBytes, handle: a.postClaim}}},
		{base + "/tasks/claim/batch", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, holds: anyBytes, handle: a.postClaimBatch}}},
		{base + "/tasks/batch/results", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, handle: a.postResults}}},
		{base + "/tasks/{id}/heartbeat", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, handle: a.postHeartbeat}}},
		{base + "/tasks/{id}/nack", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, handle: a.postNack}}},
		{base + "/tasks/{id}/abandon", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, handle: a.postAbandon}}},
		{base + "/tasks/{id}/release", []verb{{method: http.MethodPost, scope: auth.ScopeWorker, handle: a.postRelease}}},
		{base + "/tasks/{id}", []verb{{method: http.MethodGet, holds: anyBytes, handle: a.getTask}}},
		{base + "/tasks/{id}/cancel", []verb{{method: http.MethodPost, scope: auth.ScopeProducer, handle: a.cancelTask}}},
		{base + "/tasks/{id}/result", []verb{
			{method: http.MethodGet, query: []string{"waitSeconds"}, holds: anyBytes, handle: a.getResult},
			{method: http.MethodPost, scope: auth.ScopeWorker, handle: a.postResult},
		}},
		{base + "/admin/queues", []verb{{method: http.MethodGet, scope: auth.ScopeAdmin, holds: anyBytes, handle: a.getQueues}}},
		{base + "/admin/queues/{command}/tasks", []verb{{
			method: http.MethodGet, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.getTasks,
			query: []string{"state", "limit", "cursor", "status", "worker", "error", "cause"},
		}}},
		{base + "/admin/queues/{command}", []verb{
			{method: http.MethodGet, scope: auth.ScopeAdmin, handle: a.getQueue},
			{method: http.MethodPut, scope: auth.ScopeAdmin, handle: a.putQueue},
			{method: http.MethodDelete, scope: auth.ScopeAdmin, query: []string{"purge", "cancelRunning"}, handle: a.deleteQueue},
		}},
		{base + "/admin/queues/{command}/pause", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.pauseQueue}}},
		{base + "/admin/queues/{command}/resume", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.resumeQueue}}},
		{base + "/admin/tasks/{id}/replay", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.replayTask}}},
		{base + "/admin/tasks/{id}/run", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.runTask}}},
		{base + "/admin/tasks/{id}/move", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.moveTask}}},
		{base + "/admin/queues/{command}/tasks/cancel", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.cancelTasks}}},
		{base + "/admin/queues/{command}/tasks/run", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.runTasks}}},
		{base + "/admin/queues/{command}/tasks/move", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.moveTasks}}},
		{base + "/admin/queues/{command}/dlq/replay", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.replayQueue}}},
		{base + "/admin/queues/{command}/dlq", []verb{{
			method: http.MethodDelete, scope: auth.ScopeAdmin, handle: a.purgeQueue,
			query: wire.BulkParameters(wire.BulkDead),
		}}},
		{base + "/admin/queues/{command}/dlq/reasons", []verb{{
			method: http.MethodGet, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.getReasons, query: []string{"limit", "cursor", "cause"},
		}}},
		{base + "/admin/tasks/cleanup", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.cleanup}}},
		{base + "/admin/sessions", []verb{{
			method: http.MethodGet, scope: auth.ScopeAdmin, holds: anyBytes, handle: a.getSessions, query: []string{"cursor"},
		}}},
		{base + "/admin/config", []verb{{method: http.MethodGet, scope: auth.ScopeOperator, handle: a.getConfig}}},
		{base + "/admin/backup", []verb{{method: http.MethodGet, scope: auth.ScopeOperator, noHead: true, handle: a.getBackup}}},
		{sessionPath, []verb{{method: http.MethodGet, public: true, noHead: true, handle: a.openSession}}},
		{"/healthz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: getHealth}}},
		{"/readyz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: a.getReady}}},
		{"/version", []verb{{method: http.MethodGet, public: true, handle: a.getVersion}}},
		{"/metrics", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: a.getMetrics}}},
	}
}

// Routes lists every route of the API as "METHOD pattern", HEAD left out, for
// tests and documents that must leave none out.
func Routes() []string {
	var routes []string
	for _, res := range (&api{}).resources() {
		for _, v := range res.verbs {
			routes = append(routes, v.method+" "+res.pattern)
		}
	}
	return routes
}

// NewStarting makes the handler for the time before the store is open: alive,
// and not ready for anything else.
func NewStarting(log zerolog.Logger, version string, guard *Guard) http.Handler {
	a := &api{o: Options{Log: log, Version: version, Guard: guard}, mux: http.NewServeMux()}
	a.fallback = func(*call) answer { return refuse(startingError()) }
	a.mount([]resource{
		{"/healthz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: getHealth}}},
		{"/version", []verb{{method: http.MethodGet, public: true, handle: a.getVersion}}},
	})
	return a
}

// mount gives each resource its path. Methods are told apart here and not by
// the patterns of the mux, whose own 404 and 405 are plain text.
func (a *api) mount(resources []resource) {
	for _, res := range resources {
		allow, known := res.allow(), a.newRoute(res.pattern)
		a.mux.HandleFunc(res.pattern, func(w http.ResponseWriter, r *http.Request) {
			a.serve(w, r, known, func(c *call) answer {
				v := res.find(r.Method)
				if v == nil {
					return methodNotAllowed(r.Method, allow)
				}
				return a.pass(c, v)
			})
		})
	}
	a.nowhere = a.newRoute("")
	a.mux.HandleFunc("/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		a.serve(w, r, a.nowhere, a.fallback)
	})
}

func (res *resource) find(method string) *verb {
	for i := range res.verbs {
		v := &res.verbs[i]
		if v.method == method || method == http.MethodHead && v.method == http.MethodGet && !v.noHead {
			return v
		}
	}
	return nil
}

func (res *resource) allow() string {
	var methods []string
	for _, v := range res.verbs {
		methods = append(methods, v.method)
		if v.method == http.MethodGet && !v.noHead {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// ServeHTTP implements http.Handler. A path that the mux would clean and
// redirect never reaches it.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := a.o.Guard.check(r); refusal != nil {
		w.Header().Set("Connection", "close") // its body is not worth reading
		a.serve(w, r, a.nowhere, func(*call) answer { return refuse(refusal) })
		return
	}
	if !isPlainPath(r.URL) {
		a.serve(w, r, a.nowhere, a.fallback)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// isPlainPath reports a path that is already in the form the mux cleans paths
// to.
func isPlainPath(u *url.URL) bool {
	p := u.EscapedPath()
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}
