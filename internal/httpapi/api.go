package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/artifact"
	"codeq/internal/auth"
	"codeq/internal/callback"
	"codeq/internal/meter"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// base is the path below which everything but health and version lies.
const base = "/v1/codeq"

// Options are the options of the API. All are required but WallMs, Settings, Ready,
// Draining, Lost, Refused, AnswerBytes, WriteMetrics, Pages and Logins.
type Options struct {
	Engine   *shardactor.Engine
	Store    *store.Store
	Auth     auth.Authenticator
	Sessions Sessions
	Events   Events
	Site
	Hooks
	// Guard checks every request first.
	Guard *Guard
	// NowMs is the clock of the engine, in Unix milliseconds.
	NowMs func() int64
	// WallMs is the system clock, in Unix milliseconds; nil is that of the machine.
	WallMs func() int64
	Log    zerolog.Logger
	// Version and Durability are parts of answers.
	Version    string
	Durability string
	// Settings is the answer of GET /v1/codeq/admin/config; nil is an empty list.
	Settings []byte
	// Ready reports whether the server takes work; nil is always.
	Ready func() bool
	// RequireLeaseToken refuses calls about a delivery without its lease token.
	RequireLeaseToken bool
	Ends
	// Refused is called for each request that is refused because of its client; nil is no
	// report.
	Refused func(auth.Attempt)
	// AnswerBytes bounds the answers that clients have not taken yet, of all requests
	// together; 0 is no bound.
	AnswerBytes int64
	// WriteMetrics adds the figures of the server to a page of metrics.
	WriteMetrics func(p *meter.Page)
}

// Ends end the waiting of requests.
type Ends struct {
	// Draining is closed when the server begins to stop: requests that wait are answered
	// then.
	Draining <-chan struct{}
	// Lost is closed when this node leads its cluster no more and its shards have stopped:
	// requests that wait for a shard get no answer from it. nil for a server alone.
	Lost <-chan struct{}
}

// Site are the pages and who reads them.
type Site struct {
	// Logins are those of pages; nil if the server asks for no token.
	Logins *auth.Logins
	// Pages are those of the dashboard; nil is none.
	Pages Pages
	// LeaderURL is where clients reach this node while it leads a cluster; empty for a single node,
	// and if nobody has said it.
	LeaderURL string
	// Cluster is that of the nodes; nil for a server alone.
	Cluster Cluster
}

// Hooks are what posts outcomes, and keeps the files that belong to them.
type Hooks struct {
	// Callbacks know how endpoints fare; Post posts one message, as Options.Send of them does.
	Callbacks *callback.Worker
	Post      func(*callback.Call, func(callback.Answer))
	// Files are the artifacts.
	Files *artifact.Keeper
	// Notifier knows how subscriptions fare.
	Notifier *callback.Notifier
}

// Pages are what people see in a browser: files, which are the same for everybody. Any
// goroutine.
type Pages interface {
	// Has reports whether a path is one of the pages, or leads to them.
	Has(path string) bool
	// Answer answers a request for such a path, and sets headers.
	Answer(h http.Header, r *http.Request) (status int, body []byte)
}

// Sessions are the sessions of the server. Any goroutine.
type Sessions interface {
	// Upgrade makes the connection of a checked request a session, or says why not. With a
	// nil principal the credential comes in the hello.
	Upgrade(w http.ResponseWriter, r *http.Request, who *auth.Principal) *wire.Error
	// Count is the number of open sessions of all tenants.
	Count() int
	// Open is the number of open sessions of a tenant.
	Open(tenant string) int
	// List is one page of the sessions of a tenant, by id, after the id after; more says
	// that there are further ones.
	List(tenant string, after wire.SessionID, limit int) (page []wire.SessionFigures, more bool)
	// Drain keeps further tasks from an open session of a tenant until its socket ends,
	// Disconnect closes its socket; false if there is no such session.
	Drain(tenant string, id wire.SessionID) (wire.SessionFigures, bool)
	Disconnect(tenant string, id wire.SessionID) (wire.SessionFigures, bool)
}

// api is the handler that New returns.
type api struct {
	o   Options
	mux *http.ServeMux
	// fallback answers requests for unknown paths.
	fallback func(c *call) answer
	nowhere  *route
	pages    *route

	requests meter.Set
	scrape   scrape
	turns    claimTurns
	finds    finds
	// held is the sum of the shares of all calls, in bytes.
	held atomic.Int64
}

// verb is one method of a resource. A public verb needs no principal; a GET with noHead does
// not answer HEAD. query names the allowed parameters; anyQuery allows all, for probes and
// scrapers. holds is the share of an answer that can be large until it is made; with echoes
// the answer is as large as the body of the request. contents says that its answer is the contents
// of tasks. A body that streams is the handler's to bound. A stale one is for requests that TakesStale.
type verb struct {
	method   string
	scope    string
	public   bool
	noHead   bool
	query    []string
	anyQuery bool
	holds    int64
	echoes   bool
	contents bool
	streams  bool
	stale    bool
	handle   func(c *call) answer
}

// isAdmin reports whether the verb changes things as admin, or copies the data, which is the
// GET without HEAD.
func (v *verb) isAdmin() bool {
	return v.scope == auth.ScopeAdminAll && v.noHead || (v.scope == auth.ScopeAdmin || v.scope == auth.ScopeAdminAll) && v.method != http.MethodGet
}

// resource is the verbs of one path.
type resource struct {
	pattern string
	verbs   []verb
}

// API is the handler of the whole API, and what clients that watch read from it.
type API interface {
	http.Handler
	Reader
}

// New makes the handler of the whole API. Any goroutine may call New and the handler.
func New(o Options) API {
	if o.Settings == nil {
		o.Settings = []byte(`{"settings":[]}`)
	}
	if o.WallMs == nil {
		o.WallMs = func() int64 { return time.Now().UnixMilli() }
	}
	a := &api{o: o, mux: http.NewServeMux(), fallback: func(*call) answer { return refuse(notFound) }}
	a.mount(a.resources())
	return a
}

// resources are all paths of the API. A verb without a scope is for every principal of the
// tenant.
func (a *api) resources() []resource {
	return append([]resource{
		{base + "/tasks", []verb{{method: http.MethodPost, scope: auth.ScopeProduce, holds: anyBytes, echoes: true, handle: parsed(wire.ParseEnqueueRequest, a.postTask)}}},
		{base + "/tasks/batch", []verb{{method: http.MethodPost, scope: auth.ScopeProduce, holds: anyBytes, echoes: true, handle: parsed(wire.ParseBatchRequest, a.postBatch)}}},
		{base + "/tasks/claim", []verb{{method: http.MethodPost, scope: auth.ScopeClaim, holds: anyBytes, handle: parsed(wire.ParseClaimRequest, a.postClaim)}}},
		{base + "/tasks/claim/batch", []verb{{method: http.MethodPost, scope: auth.ScopeClaim, holds: anyBytes, handle: parsed(wire.ParseClaimBatchRequest, a.postClaimBatch)}}},
		{base + "/tasks/batch/results", []verb{{method: http.MethodPost, scope: auth.ScopeResult, handle: parsed(wire.ParseResultBatch, a.postResults)}}},
		{base + "/tasks/{id}/heartbeat", []verb{{method: http.MethodPost, scope: auth.ScopeHeartbeat, handle: onDelivery(a, wire.ParseExtendRequest, extendMessage)}}},
		{base + "/tasks/{id}/nack", []verb{{method: http.MethodPost, scope: auth.ScopeNack, handle: onDelivery(a, wire.ParseNackRequest, nackMessage)}}},
		{base + "/tasks/{id}/abandon", []verb{{method: http.MethodPost, scope: auth.ScopeAbandon, handle: onDelivery(a, parseAbandon, abandonMessage)}}},
		{base + "/tasks/{id}/release", []verb{{method: http.MethodPost, scope: auth.ScopeAbandon, handle: onDelivery(a, wire.ParseReleaseRequest, releaseMessage)}}},
		{base + "/tasks/{id}", []verb{{method: http.MethodGet, holds: anyBytes, handle: a.getTask}}},
		{base + "/tasks/{id}/cancel", []verb{{method: http.MethodPost, scope: auth.ScopeProduce, handle: onTask(a, mailbox.ClassKeep, parseVerb, shard.Cancel)}}},
		{base + "/tasks/{id}/result", []verb{
			{method: http.MethodGet, query: resultQuery, contents: true, holds: anyBytes, handle: a.getResult},
			{method: http.MethodPost, scope: auth.ScopeResult, handle: onDeliveryAfter(a, wire.ParseResultRequest, a.putContents, resultMessage)},
		}},
		{base + "/admin/queues", []verb{{method: http.MethodGet, scope: auth.ScopeView, holds: anyBytes, query: []string{"system"}, handle: a.getQueues}}},
		{base + "/admin/queues/{command}/tasks", []verb{{
			method: http.MethodGet, scope: auth.ScopeView, holds: pageBytes, handle: a.getTasks,
			query: tasksQuery,
		}}},
		{base + "/admin/queues/{command}", []verb{
			{method: http.MethodGet, scope: auth.ScopeView, handle: a.getQueue},
			{method: http.MethodPut, scope: auth.ScopeAdmin, handle: parsed(wire.ParseQueueSettings, a.putQueue)},
			{method: http.MethodDelete, scope: auth.ScopeAdmin, query: []string{"purge", "cancelRunning"}, handle: a.deleteQueue},
		}},
		{base + "/admin/queues/{command}/pause", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(parseBare, a.pauseQueue)}}},
		{base + "/admin/queues/{command}/resume", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(parseBare, a.resumeQueue)}}},
		{base + "/admin/tasks/{id}/replay", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: onTask(a, mailbox.ClassNew, parseVerb, shard.Replay)}}},
		{base + "/admin/tasks/{id}/run", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: onTask(a, mailbox.ClassNew, parseVerb, shard.RunNow)}}},
		{base + "/admin/tasks/{id}/take-back", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: onTask(a, mailbox.ClassKeep, parseVerb, shard.TakeBack)}}},
		{base + "/admin/tasks/{id}/move", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: onTask(a, mailbox.ClassNew, wire.ParseMoveRequest, shard.Prioritize)}}},
		{base + "/admin/queues/{command}/tasks/cancel", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.bulk(bulkCancel)}}},
		{base + "/admin/queues/{command}/tasks/run", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.bulk(bulkRun)}}},
		{base + "/admin/queues/{command}/tasks/move", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, holds: pageBytes, handle: a.bulk(bulkMove)}}},
		{base + "/admin/queues/{command}/dlq/replay", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.bulk(bulkReplay)}}},
		{base + "/admin/queues/{command}/dlq", []verb{{
			method: http.MethodDelete, scope: auth.ScopeAdmin, handle: a.purgeQueue,
			query: wire.BulkParameters(wire.BulkDead),
		}}},
		{base + "/admin/queues/{command}/dlq/reasons", []verb{{
			method: http.MethodGet, scope: auth.ScopeView, contents: true, holds: pageBytes, handle: a.getReasons, query: reasonsQuery,
		}}},
		{base + "/admin/tasks", []verb{{
			method: http.MethodGet, scope: auth.ScopeView, holds: pageBytes, handle: a.findTasks,
			query: append(wire.SearchParameters(), "limit", "cursor"),
		}}},
		{base + "/admin/tasks/cleanup", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: parsed(wire.ParseEndedRequest, a.cleanup)}}},
		{base + "/admin/sessions", []verb{{
			method: http.MethodGet, scope: auth.ScopeView, holds: anyBytes, handle: a.getSessions, query: []string{"cursor"},
		}}},
		{base + "/admin/sessions/{session}/drain", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.onSession(Sessions.Drain)}}},
		{base + "/admin/sessions/{session}/disconnect", []verb{{method: http.MethodPost, scope: auth.ScopeAdmin, handle: a.onSession(Sessions.Disconnect)}}},
		{base + "/admin/config", []verb{{method: http.MethodGet, scope: auth.ScopeAdminAll, handle: a.getConfig}}},
		a.backups(),
		{loginPath, []verb{
			{method: http.MethodGet, handle: a.getLogin},
			{method: http.MethodPost, handle: parsed(parseBare, a.postLogin)},
			{method: http.MethodDelete, public: true, handle: parsed(parseBare, a.deleteLogin)},
		}},
		{eventsPath, []verb{{method: http.MethodGet, public: true, noHead: true, query: streamQuery, handle: a.openEvents}}},
		{sessionPath, []verb{{method: http.MethodGet, public: true, noHead: true, handle: a.openSession}}},
		{"/healthz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: getHealth}}},
		{"/readyz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: a.getReady}}},
		{"/version", []verb{{method: http.MethodGet, public: true, handle: a.getVersion}}},
		{"/metrics", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: a.getMetrics}}},
	}, slices.Concat(a.reportResources(), a.limitResources(), a.webhookResources(), a.artifactResources(), a.subscriptionResources(), a.clusterResources())...)
}

// Routes are all routes of the API as "METHOD pattern", without HEAD, for tests of the
// documents.
func Routes() []string {
	var routes []string
	for _, res := range (&api{}).resources() {
		for _, v := range res.verbs {
			routes = append(routes, v.method+" "+res.pattern)
		}
	}
	return routes
}

// NewStarting makes the handler for the time until the store is open. It answers health and
// version, has the pages, if any, and refuses everything else.
func NewStarting(log zerolog.Logger, version string, guard *Guard, pages Pages) http.Handler {
	a := &api{o: Options{Log: log, Version: version, Guard: guard, Pages: pages}, mux: http.NewServeMux()}
	a.fallback = func(*call) answer { return refuse(startingError) }
	a.mount([]resource{
		{"/healthz", []verb{{method: http.MethodGet, public: true, anyQuery: true, handle: getHealth}}},
		{"/version", []verb{{method: http.MethodGet, public: true, handle: a.getVersion}}},
	})
	return a
}

// mount gives each resource its path. The patterns have no methods, because the 404 and 405
// of the mux are plain text.
func (a *api) mount(resources []resource) {
	for _, res := range resources {
		allow, known := res.allow(), a.newRoute(res.pattern)
		a.mux.HandleFunc(res.pattern, func(w http.ResponseWriter, r *http.Request) {
			if res.verbs[0].stale && !TakesStale(r) {
				a.serve(w, r, a.nowhere, a.fallback)
				return
			}
			a.serve(w, r, known, func(c *call) answer {
				if ans, isOne := a.preflight(c, &res); isOne {
					return ans
				}
				v := res.find(r.Method)
				if v == nil {
					w.Header().Set("Allow", allow)
					return refuse(wire.Refuse(wire.CodeMethodNotAllowed, fmt.Sprintf("this path takes %s, not %.20q", allow, r.Method)))
				}
				if v.isShared(res.pattern) {
					a.share(c)
				}
				return a.pass(c, v)
			})
		})
	}
	a.nowhere, a.pages = a.newRoute(""), a.newRoute("/ui/")
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

// ServeHTTP implements http.Handler. A path that the mux would clean and redirect does not
// reach the mux.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := a.o.Guard.check(r); refusal != nil {
		w.Header().Set("Connection", "close") // nobody reads its body
		a.serve(w, r, a.nowhere, func(*call) answer { return refuse(refusal) })
		return
	}
	if a.o.Pages != nil && a.o.Pages.Has(r.URL.Path) {
		a.serve(w, r, a.pages, a.servePage)
		return
	}
	if !isPlainPath(r.URL) {
		a.serve(w, r, a.nowhere, a.fallback)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// servePage answers with a file of the pages. Files need no credential: what they show they
// ask for with that of the person.
func (a *api) servePage(c *call) answer {
	if refusal := c.limitBody(false); refusal != nil {
		c.w.Header().Set("Connection", "close") // nobody reads its body
		return refuse(refusal)
	}
	status, body := a.o.Pages.Answer(c.w.Header(), c.r)
	return answer{status: status, body: body}
}

// isPlainPath reports whether the mux would leave a path as it is.
func isPlainPath(u *url.URL) bool {
	p := u.EscapedPath()
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}
