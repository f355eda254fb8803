package httpapi

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"codeq/auth"
	"codeq/wire"
)

const (
	headerRequestID = "X-Request-Id"
	headerReplayed  = "Idempotent-Replayed"

	maxRequestIDBytes = 128
	// bodyReadFor is how long a client may take to begin a body, and all the time
	// for a small one; then each paced.LeastBytes of it give it paced.Window more, the
	// pace at which it must take an answer. The server has no such limits of its own,
	// because they would also end sessions.
	bodyReadFor = 30 * time.Second
)

// call is one request on its way through the API. It belongs to the goroutine
// of the request.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	control   *http.ResponseController
	requestID string
	// who is set once the request is authenticated, query when its names are known
	// to be those of the verb, each at most once.
	who   *auth.Principal
	query url.Values
	// held is what the answer counts for in the budget of all.
	held int64
	// record is the line of the log about a change by an admin, nil for anything
	// else.
	record *zerolog.Event
}

// answer is what a handler wants to be sent. Only the fields that are set
// become headers.
type answer struct {
	status            int
	refusal           *wire.Error // what body says, nil for no refusal
	body              []byte
	contentType       string
	location          string
	allow             string
	replayed          bool
	retryAfterSeconds int
	// handedOver: somebody else answers, or there is nobody to answer.
	handedOver bool
	// unlessGone is carried out when the client has left right before the first
	// byte of the answer, instead of that, or does not take all of it: what it was
	// to get goes back. keep is carried out every keepEvery until then.
	unlessGone func()
	keep       func()
	keepEvery  time.Duration
	// taken is carried out when all of the answer has been written.
	taken func()
	// abort: end the connection without a word, because the client left or
	// what was begun can't be told.
	abort bool
}

// serve runs one request from its id to its log line.
func (a *api) serve(w http.ResponseWriter, r *http.Request, at *route, handle func(c *call) answer) {
	startedAt := time.Now()
	c := &call{w: w, r: r, control: http.NewResponseController(w), requestID: requestIDOf(r)}
	w.Header().Set(headerRequestID, c.requestID)
	ans := a.guarded(c, handle)
	a.holdAnswer(c, &ans)
	defer a.letGo(c)
	if ans.unlessGone != nil && r.Context().Err() != nil {
		ans.unlessGone()
		ans.abort = true
	}
	if !ans.handedOver && !ans.abort {
		switch written := a.write(c, &ans); {
		case written && ans.taken != nil:
			ans.taken()
		case !written && ans.unlessGone != nil:
			ans.unlessGone()
			ans.abort = true
		}
	}
	at.count(ans.status)
	a.tell(c, &ans)
	a.o.Log.Debug().Str("requestId", c.requestID).Str("method", r.Method).Str("route", at.pattern).
		Int("status", ans.status).Dur("durationMs", time.Since(startedAt)).Msg("request")
	if ans.abort {
		panic(http.ErrAbortHandler)
	}
}

// tell writes down what an admin has done, and tells of a request that was refused
// because of who sent it.
func (a *api) tell(c *call, ans *answer) {
	if ans.refusal != nil && a.o.Refused != nil && auth.AboutWho(ans.refusal) {
		a.o.Refused(auth.Attempt{
			Remote: c.r.RemoteAddr, What: c.r.Method + " " + c.r.URL.EscapedPath(), Who: c.who, Refusal: ans.refusal,
		})
	}
	if c.record == nil {
		return
	}
	if ans.refusal != nil {
		c.record.Str("code", string(ans.refusal.Code))
	}
	c.record.Int("status", ans.status).Bool("brokeOff", ans.abort).Msg("admin")
}

// guarded turns a panic of a handler into an answer. Nothing has been written
// by then, so the connection goes on.
func (a *api) guarded(c *call, handle func(c *call) answer) (ans answer) {
	defer func() {
		if p := recover(); p != nil {
			a.o.Log.Error().Str("requestId", c.requestID).Str("panic", fmt.Sprint(p)).
				Bytes("stack", debug.Stack()).Msg("handler panicked")
			ans = refuse(internalError())
		}
	}()
	return handle(c)
}

// pass takes a request through the checks, in the order the protocol names,
// and hands it to its handler.
func (a *api) pass(c *call, v *verb) answer {
	if refusal := c.limitBody(); refusal != nil {
		ans := refuse(refusal)
		// The body is not worth reading to its end for the next request.
		c.w.Header().Set("Connection", "close")
		return ans
	}
	if v.public {
		return a.handle(c, v)
	}
	who, refusal := a.o.Auth.Authenticate(c.r.Context(), bearerOf(c.r))
	if refusal != nil {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		return refuse(refusal)
	}
	if who.Tenant == "" {
		panic("httpapi: a principal without a tenant")
	}
	c.who = who
	if v.scope != "" && !who.Has(v.scope) {
		return refuse(wire.Refuse(wire.CodeForbidden, "this credential lacks the scope "+v.scope))
	}
	if v.isAdmin() {
		c.record = a.recordOf(c, zerolog.InfoLevel)
	}
	if c.r.ContentLength != 0 && (v.method == http.MethodGet || v.method == http.MethodDelete) {
		if refusal := c.readBareBody(); refusal != nil {
			return refuse(refusal)
		}
	}
	return a.handle(c, v)
}

// recordOf begins the line of the log about what an admin does, nil at a level that is
// not written.
func (a *api) recordOf(c *call, level zerolog.Level) *zerolog.Event {
	return a.o.Log.WithLevel(level).Str("requestId", c.requestID).Str("tenant", c.who.Tenant).Str("subject", c.who.Subject).
		Str("remote", c.r.RemoteAddr).Str("method", c.r.Method).Str("path", c.r.URL.EscapedPath())
}

// handle reads the parameters of a request that may be made, and hands it to its
// handler.
func (a *api) handle(c *call, v *verb) answer {
	if c.r.URL.RawQuery != "" && !v.anyQuery {
		if refusal := c.readQuery(v.query); refusal != nil {
			return refuse(refusal)
		}
	}
	if refusal := a.holdFor(c, v); refusal != nil {
		return refuse(refusal)
	}
	return v.handle(c)
}

// write sends an answer whole, and reports false if the connection did not take it.
func (a *api) write(c *call, ans *answer) bool {
	h := c.w.Header()
	if ans.status != http.StatusNoContent {
		h.Set("Content-Type", cmp.Or(ans.contentType, "application/json"))
		h.Set("Content-Length", strconv.Itoa(len(ans.body)))
	}
	setIfAny(h, "Location", ans.location)
	setIfAny(h, "Allow", ans.allow)
	if ans.replayed {
		h.Set(headerReplayed, "true")
	}
	if ans.retryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(ans.retryAfterSeconds))
	}
	if ans.keep != nil {
		defer repeat(ans.keep, ans.keepEvery)()
	}
	c.w.WriteHeader(ans.status)
	_, err := c.w.Write(ans.body)
	if err == nil && ans.unlessGone != nil {
		// Otherwise the last bytes leave when nobody is told any more.
		err = c.control.Flush()
	}
	if err == nil || errors.Is(err, http.ErrBodyNotAllowed) || errors.Is(err, http.ErrNotSupported) {
		return true
	}
	a.o.Log.Debug().Str("requestId", c.requestID).Err(err).Msg("client did not take the answer")
	return false
}

// repeat carries something out every so often, beside its caller, until stop
// returns.
func repeat(do func(), every time.Duration) (stop func()) {
	var mu sync.Mutex // held while it is carried out
	var timer *time.Timer
	ended := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			do()
			timer.Reset(every)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}

func setIfAny(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// requestIDOf is the client's own id for the request if it can stand in a
// header and a log line, or else a new one.
func requestIDOf(r *http.Request) string {
	id := r.Header.Get(headerRequestID)
	if id == "" || len(id) > maxRequestIDBytes {
		return rand.Text()
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return rand.Text()
		}
	}
	return id
}

// bearerOf is the credential of the request, empty when there is none of the
// kind the protocol knows.
func bearerOf(r *http.Request) string {
	scheme, credential, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return credential
}
