package httpapi

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/record"
	"codeq/wire"
)

const (
	headerRequestID = "X-Request-Id"
	headerReplayed  = "Idempotent-Replayed"

	maxRequestIDBytes = 128
	// bodyReadFor is the time for a small body. Each paced.LeastBytes of a larger one add
	// paced.Window, so a client must send as fast as it must take an answer. The HTTP server
	// has no such limit, because it would end sessions as well.
	bodyReadFor = 30 * time.Second
)

// call is one request. It belongs to the goroutine of the request.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	control   *http.ResponseController
	requestID string
	// who is set once the request is authenticated, query once it is checked, taskID and queue
	// if the path names one.
	who *auth.Principal
	// own is the tenant of the credential, if the request names one for which it acts.
	own    string
	query  url.Values
	taskID wire.TaskID
	queue  record.QueueKey
	// bodyBytes is the size of the body that was read.
	bodyBytes int
	// held is the share of the answer in the budget of all answers, in bytes.
	held int64
	// record is the log line about a change by an admin, else nil.
	record *zerolog.Event
}

// answer is what a handler answers. Its other headers are in the call already.
type answer struct {
	status            int
	refusal           *wire.Error // what the body says; nil for no refusal
	body              []byte
	retryAfterSeconds int
	// handedOver says that the handler has answered, or that a session has the connection.
	handedOver bool
	// here answers the request in place of this handler; nil for none.
	here http.Handler
	// undelivered is called if the client has left before the first byte of the answer or
	// does not take all of it: the tasks in the answer go back. extend is called every
	// extendEvery while the answer is written.
	undelivered func()
	extend      func()
	extendEvery time.Duration
	// written is called when all of the answer was written.
	written func()
	// abort closes the connection without an answer: the client has left, or half of the
	// answer was written.
	abort bool
}

// okay is the answer of a request that succeeded.
func okay(body []byte) answer { return answer{status: http.StatusOK, body: body} }

// parsed makes a handler that reads and parses the body first.
func parsed[T any](parse func(body []byte) (T, *wire.Error), handle func(c *call, request T) answer) func(c *call) answer {
	return func(c *call) answer {
		body, refusal := c.readBody()
		if refusal != nil {
			return refuse(refusal)
		}
		request, refusal := parse(body)
		if refusal != nil {
			return refuse(refusal)
		}
		return handle(c, request)
	}
}

// serve runs one request from its id to its log line.
func (a *api) serve(w http.ResponseWriter, r *http.Request, at *route, handle func(c *call) answer) {
	startedAt := time.Now()
	c := &call{w: w, r: r, control: http.NewResponseController(w), requestID: requestIDOf(r)}
	addAlways(w.Header(), r)
	w.Header().Set(headerRequestID, c.requestID)
	if a.o.LeaderURL != "" {
		w.Header().Set(headerLeader, a.o.LeaderURL)
	}
	ans := a.guarded(c, handle)
	a.holdAnswer(c, &ans)
	defer a.hold(c, 0)
	if ans.undelivered != nil && r.Context().Err() != nil {
		ans.undelivered()
		ans.abort = true
	}
	if !ans.handedOver && !ans.abort {
		switch written := a.write(c, &ans); {
		case written && ans.written != nil:
			ans.written()
		case !written && ans.undelivered != nil:
			ans.undelivered()
			ans.abort = true
		}
	}
	at.count(ans.status)
	a.report(c, &ans)
	a.o.Log.Debug().Str("requestId", c.requestID).Str("method", r.Method).Str("route", at.pattern).
		Int("status", ans.status).Dur("durationMs", time.Since(startedAt)).Msg("request")
	if ans.abort {
		panic(http.ErrAbortHandler)
	}
	if ans.here != nil {
		ans.here.ServeHTTP(w, r)
	}
}

// report logs the change of an admin, and reports a request that was refused because of its
// client.
func (a *api) report(c *call, ans *answer) {
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

// guarded turns a panic of a handler into an answer. The handler has written nothing, so the
// connection stays usable.
func (a *api) guarded(c *call, handle func(c *call) answer) (ans answer) {
	defer func() {
		if p := recover(); p != nil {
			a.o.Log.Error().Str("requestId", c.requestID).Str("panic", fmt.Sprint(p)).
				Bytes("stack", debug.Stack()).Msg("handler panicked")
			ans = refuse(internalError)
		}
	}()
	return handle(c)
}

// pass checks a request in the order that the protocol names, and calls its handler.
func (a *api) pass(c *call, v *verb) answer {
	if refusal := c.limitBody(v.streams); refusal != nil {
		ans := refuse(refusal)
		// net/http would otherwise read the body to its end before the next request.
		c.w.Header().Set("Connection", "close")
		return ans
	}
	if v.public {
		return a.handle(c, v)
	}
	who, refusal := a.authenticate(c)
	if refusal != nil {
		return refuse(refusal)
	}
	if who.Tenant == "" {
		panic("httpapi: a principal without a tenant")
	}
	c.who = who
	if v.scope != "" {
		if refusal := who.CheckScope(v.scope); refusal != nil {
			return refuse(refusal)
		}
	}
	if v.contents {
		if refusal := who.CheckContents(); refusal != nil {
			return refuse(refusal)
		}
	}
	if v.isAdmin() {
		c.record = a.recordOf(c, zerolog.InfoLevel)
	}
	if c.r.ContentLength != 0 && (v.method == http.MethodGet || v.method == http.MethodDelete) {
		if ans := parsed(parseBare, func(*call, struct{}) answer { return answer{} })(c); ans.refusal != nil {
			return ans
		}
	}
	return a.handle(c, v)
}

// recordOf begins the log line about a change by an admin; nil at a level that is not
// logged.
func (a *api) recordOf(c *call, level zerolog.Level) *zerolog.Event {
	line := a.o.Log.WithLevel(level).Str("requestId", c.requestID).Str("tenant", c.who.Tenant).Str("subject", c.who.Subject).
		Str("remote", c.r.RemoteAddr).Str("method", c.r.Method).Str("path", c.r.URL.EscapedPath())
	if c.own != "" && c.own != c.who.Tenant {
		line.Str("ofTenant", c.own)
	}
	return line
}

// contentQuery are the parameters that search the contents of tasks.
var contentQuery = []string{"error", "error~", "payload~"}

// handle reads query and path of a request that is allowed, and calls its handler.
func (a *api) handle(c *call, v *verb) answer {
	if c.r.URL.RawQuery != "" && !v.anyQuery {
		if refusal := c.readQuery(v.query); refusal != nil {
			return refuse(refusal)
		}
		if slices.ContainsFunc(contentQuery, c.query.Has) {
			if refusal := c.who.CheckContents(); refusal != nil {
				return refuse(refusal)
			}
		}
	}
	if refusal := a.holdFor(c, v); refusal != nil {
		return refuse(refusal)
	}
	if refusal := c.readPath(); refusal != nil {
		return refuse(refusal)
	}
	return v.handle(c)
}

// readPath reads the id of a task or the queue that the path names.
func (c *call) readPath() (refusal *wire.Error) {
	if text := c.r.PathValue("id"); text != "" {
		id, ok := wire.ParseTaskID(text)
		if !ok {
			return unknownTaskID
		}
		c.taskID = id
	}
	if command := c.r.PathValue("command"); command != "" {
		c.queue = record.QueueKey{Command: command, Tenant: c.who.Tenant}
		if refusal = wire.CheckCommand(command); refusal == nil {
			refusal = c.who.CheckCommand(command)
		}
	}
	if name := c.r.PathValue("artifact"); name != "" && refusal == nil {
		if problem := wire.ArtifactNameProblem(name); problem != "" {
			return wire.Refuse(wire.CodeInvalidArgument, "the name of an artifact "+problem)
		}
	}
	if name := c.r.PathValue("name"); name != "" {
		if problem := wire.EndpointProblem(name); problem != "" {
			return wire.Refuse(wire.CodeInvalidArgument, "the name of a webhook "+problem)
		}
	}
	return refusal
}

// write writes an answer, and reports whether the connection took all of it.
func (a *api) write(c *call, ans *answer) bool {
	h := c.w.Header()
	if ans.status != http.StatusNoContent {
		h.Set("Content-Type", cmp.Or(h.Get("Content-Type"), "application/json"))
		h.Set("Content-Length", strconv.Itoa(len(ans.body)))
	}
	if ans.retryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(ans.retryAfterSeconds))
	}
	if ans.extend != nil {
		defer repeat(ans.extend, ans.extendEvery)()
	}
	c.w.WriteHeader(ans.status)
	_, err := c.w.Write(ans.body)
	if err == nil && ans.undelivered != nil {
		// Without a flush the last bytes leave after the handler, and an error is lost.
		err = c.control.Flush()
	}
	if err == nil || errors.Is(err, http.ErrBodyNotAllowed) || errors.Is(err, http.ErrNotSupported) {
		return true
	}
	a.o.Log.Debug().Str("requestId", c.requestID).Err(err).Msg("client did not take the answer")
	return false
}

// repeat calls a function again and again after a time, in another goroutine, until stop
// returns.
func repeat(do func(), every time.Duration) (stop func()) {
	var mu sync.Mutex // held while do runs
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

// requestIDOf is the client's id for the request if a header and a log line can hold it,
// else a new id.
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

// bearerOf is the credential in the header Authorization. ok is false if there is none, or
// one of another scheme.
func bearerOf(r *http.Request) (credential string, ok bool) {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return credential, true
}
