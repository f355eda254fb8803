package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"codeq/internal/auth"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const eventsPath = base + "/events"

// Events are the clients that watch. Any goroutine.
type Events interface {
	// Upgrade makes the connection of a checked request a socket that watches, or says why
	// not. With a nil principal the credential comes in the hello.
	Upgrade(w http.ResponseWriter, r *http.Request, who *auth.Principal) *wire.Error
	// Stream answers a request with server-sent events, until the client leaves or the server
	// stops. A refusal comes before the first byte.
	Stream(w http.ResponseWriter, r *http.Request, who *auth.Principal, f *wire.WatchSubscribe) *wire.Error
}

// streamQuery are the parameters of a stream: the members of its only subscription.
var streamQuery = []string{"kind", "taskId", "commands", "causes", "maxPerSecond"}

// openEvents upgrades a request to a socket that watches, or streams one subscription to a client
// that accepts server-sent events.
func (a *api) openEvents(c *call) answer {
	if hasToken(c.r.Header, "Accept", "text/event-stream") {
		return a.streamEvents(c)
	}
	if refusal := checkUpgrade(c.r, "this path", wire.WatchSubprotocol); refusal != nil {
		c.w.Header().Set(headerVersion, wsVersion)
		return refuse(refusal)
	}
	if len(c.query) > 0 {
		return refuse(wire.Refuse(wire.CodeInvalidArgument, "parameters are for server-sent events: over a WebSocket, send subscribe"))
	}
	who, refusal := a.principalOf(c)
	if refusal == nil {
		refusal = a.o.Events.Upgrade(c.w, c.r, who)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return answer{handedOver: true}
}

func (a *api) streamEvents(c *call) answer {
	who, refusal := a.authenticate(c)
	if refusal != nil {
		return refuse(refusal)
	}
	c.who = who
	f, refusal := c.streamOf()
	if refusal == nil {
		refusal = a.o.Events.Stream(c.w, c.r, who, f)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return answer{status: http.StatusOK, handedOver: true}
}

// streamOf reads the subscription of a stream from the query, and where it resumes.
func (c *call) streamOf() (*wire.WatchSubscribe, *wire.Error) {
	bad := func(sentence string) *wire.Error { return wire.Refuse(wire.CodeInvalidArgument, sentence) }
	f := &wire.WatchSubscribe{ID: "stream", Kind: c.query.Get("kind")}
	if f.Kind != wire.WatchTask && f.Kind != wire.WatchEvents {
		return nil, bad("kind must be task or events; the other kinds come over a WebSocket")
	}
	if text := c.query.Get("taskId"); text != "" {
		id, ok := wire.ParseTaskID(text)
		if !ok {
			return nil, unknownTaskID
		}
		f.TaskID = id
	}
	f.Commands, f.Causes = splitList(c.query.Get("commands")), splitList(c.query.Get("causes"))
	if text := c.query.Get("maxPerSecond"); text != "" {
		n, ok := wire.ParseInteger(text)
		if f.MaxPerSecond = int(n); !ok || n == 0 {
			return nil, bad("maxPerSecond must be an integer from 1 to 1000")
		}
	}
	// The parser of the frame has the rules.
	frames, refusal := wire.ParseWatchRequest(wire.AppendWatchRequest(nil, f))
	if refusal != nil {
		return nil, refusal
	}
	if u, ok := frames[0].(*wire.Unknown); ok {
		return nil, u.Err
	}
	f, _ = frames[0].(*wire.WatchSubscribe) // a subscribe comes back as one
	if id := c.r.Header.Get("Last-Event-Id"); id != "" && !f.Resume(id) {
		return nil, bad("Last-Event-ID must be the id of an event of this stream, such as 019b76da/17,9")
	}
	return f, nil
}

// splitList are the elements of a list with commas; nil for an empty text.
func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Reader reads tasks for the clients that watch, as the routes for them do. Any goroutine.
type Reader interface {
	// ReadTasks reads the tasks of ids, but for those that are gone.
	ReadTasks(ctx context.Context, who *auth.Principal, ids []wire.TaskID) ([]*wire.Task, *wire.Error)
	// ReadPage reads what a subscription of kind page shows first: Tasks, Scanned and Cursor.
	ReadPage(ctx context.Context, who *auth.Principal, f *wire.WatchSubscribe) (*wire.WatchSnapshot, *wire.Error)
}

// watching is the call of a client that watches.
func watching(ctx context.Context, who *auth.Principal) *call {
	return &call{r: new(http.Request).WithContext(ctx), who: who}
}

// ReadTasks implements Reader.
func (a *api) ReadTasks(ctx context.Context, who *auth.Principal, ids []wire.TaskID) ([]*wire.Task, *wire.Error) {
	c := watching(ctx, who)
	var tasks []*wire.Task
	var err error
	for _, id := range ids {
		task, failed := a.o.Store.ReadTask(who.Tenant, id)
		if err = cmp.Or(err, failed); task != nil {
			tasks = append(tasks, task)
		}
	}
	if err = a.durable(c, err); err != nil {
		return nil, a.notRead(c, err)
	}
	a.addLeases(c, tasks...)
	return tasks, nil
}

// ReadPage implements Reader.
func (a *api) ReadPage(ctx context.Context, who *auth.Principal, f *wire.WatchSubscribe) (*wire.WatchSnapshot, *wire.Error) {
	c := watching(ctx, who)
	if f.Filter != nil {
		return a.readFound(c, f)
	}
	refusal := who.CheckCommand(f.Command)
	query := &store.ListQuery{
		Queue: record.QueueKey{Command: f.Command, Tenant: who.Tenant}, State: listStates[f.State],
		Limit: f.Limit, MostRead: listMostRead, MostBytes: listMostBytes,
	}
	if f.Cursor != "" && refusal == nil {
		query.After, refusal = decodeCursor(f.Cursor, query.Queue, query.State)
	}
	if refusal != nil {
		return nil, refusal
	}
	page, err := a.listTasks(c, query)
	if err != nil {
		return nil, a.notRead(c, err)
	}
	shows := &wire.WatchSnapshot{Cursor: encodeCursor(query.Queue, query.State, page.Places)}
	shows.Tasks = page.Tasks
	return shows, nil
}

// readFound is ReadPage for a page of what a search finds.
func (a *api) readFound(c *call, ask *wire.WatchSubscribe) (*wire.WatchSnapshot, *wire.Error) {
	search, refusal := wire.ParseTaskSearch(ask.Filter, a.o.NowMs())
	if refusal == nil && search.AsksPrivate() {
		refusal = c.who.CheckContents()
	}
	if refusal != nil {
		return nil, refusal
	}
	f := &find{TaskSearch: search, tenant: c.who.Tenant, limit: ask.Limit}
	refusal, err := a.search(c, f, ask.Cursor)
	if err != nil {
		refusal = a.notRead(c, err)
	}
	if refusal != nil {
		return nil, refusal
	}
	shows := &wire.WatchSnapshot{Scanned: new(int64(f.scanned)), Cursor: f.cursor()}
	shows.Tasks = f.tasks
	return shows, nil
}

// notRead is failedRead for a client that watches.
func (a *api) notRead(c *call, err error) *wire.Error {
	return cmp.Or(a.failedRead(c, err).refusal, wire.Refuse(wire.CodeDraining, "the connection has ended"))
}
