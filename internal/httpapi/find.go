package httpapi

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// A search looks at the tasks of all queues of a tenant. By id, or by one label alone, it reads
// what it answers with; any other search looks at what it leaves out, too, until a bound of one
// page, and its cursor says where the next page goes on.
const (
	// findMostRead and findFor bound what one page looks at. findStep are the tasks between two
	// looks at the clock.
	findMostRead = 20_000
	findFor      = 200 * time.Millisecond
	findStep     = 2000
	// maxFinds is how many searches look at tasks at once, one of each tenant; others wait for
	// findWait.
	maxFinds = 2
	findWait = time.Second
	// findList marks the cursors of searches.
	findList = bulkList - 4
)

var findsBusy = wire.Refuse(wire.CodeRateLimited, "other searches are running: one for each tenant, and two over the server; try again in a second")

// finds are the tenants whose searches look at tasks.
type finds struct {
	mu      sync.Mutex
	tenants []string
	// ended is closed when a search ends; nil while none waits for that.
	ended chan struct{}
}

// begin waits for the turn of a search, and reports whether it came.
func (f *finds) begin(ctx context.Context, tenant string) bool {
	ctx, cancel := context.WithTimeout(ctx, findWait)
	defer cancel()
	for {
		f.mu.Lock()
		if len(f.tenants) < maxFinds && !slices.Contains(f.tenants, tenant) {
			f.tenants = append(f.tenants, tenant)
			f.mu.Unlock()
			return true
		}
		if f.ended == nil {
			f.ended = make(chan struct{})
		}
		ended := f.ended
		f.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
	}
}

func (f *finds) end(tenant string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tenants = slices.DeleteFunc(f.tenants, func(other string) bool { return other == tenant })
	if f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
}

// find is one page of a search.
type find struct {
	*wire.TaskSearch
	tenant string
	// lists are what is left to look at; after is the place in the first of them.
	lists   []store.ListQuery
	after   []store.ListPlace
	limit   int
	until   time.Time
	tasks   []*wire.Task
	scanned int
	bytes   int
}

// findTasks answers with tasks of the tenant.
func (a *api) findTasks(c *call) answer {
	limit, refusal := c.integer("limit", listDefault, 1, wire.MaxListTasks)
	if refusal != nil {
		return refuse(refusal)
	}
	cursor := c.query.Get("cursor")
	c.query.Del("limit")
	c.query.Del("cursor")
	search, refusal := wire.ParseTaskSearch(c.queryAsBody(), a.o.NowMs())
	if refusal != nil {
		return refuse(refusal)
	}
	f := &find{TaskSearch: search, tenant: c.who.Tenant, limit: limit}
	refusal, err := a.search(c, f, cursor)
	switch {
	case err != nil:
		return a.failedRead(c, err)
	case refusal != nil:
		return refuse(refusal)
	}
	body := append(c.appendTasks([]byte(`{"tasks":[`), f.tasks), `],"scanned":`...)
	body = strconv.AppendInt(body, int64(f.scanned), 10)
	return okay(append(appendCursorMember(body, f.cursor()), '}'))
}

// search finds the page behind a cursor, with the leases of its tasks; "" is the first one.
func (a *api) search(c *call, f *find, cursor string) (refusal *wire.Error, err error) {
	err = a.plan(f)
	if err == nil && cursor != "" {
		if refusal = f.goOn(cursor); refusal != nil {
			return refusal, nil
		}
	}
	if err == nil && f.looks() {
		if !a.finds.begin(c.r.Context(), f.tenant) {
			return findsBusy, nil
		}
		defer a.finds.end(f.tenant)
	}
	f.until = time.Now().Add(findFor)
	if err == nil {
		err = f.run(a.o.Store, func(t *wire.Task) bool { return c.who.CheckCommand(t.Command) != nil })
	}
	if err = a.durable(c, err); err == nil {
		a.addLeases(c, f.tasks...)
	}
	return nil, err
}

// looks reports whether the search looks at more tasks than it answers with.
func (f *find) looks() bool {
	rest := *f.TaskSearch
	rest.Labels = ""
	return f.ID.IsZero() && (len(f.Labels.List()) != 1 || rest != wire.TaskSearch{})
}

// plan names what the search goes through: the tasks of a label, or those of each queue in each
// state, by command.
func (a *api) plan(f *find) error {
	switch {
	case !f.ID.IsZero():
		return a.findID(f)
	case f.Labels != "":
		f.lists = []store.ListQuery{{
			Queue: record.QueueKey{Tenant: f.tenant}, State: store.ListLabelled, Filter: store.ListFilter{TaskSearch: *f.TaskSearch},
		}}
		return nil
	}
	queues, err := a.o.Store.ReadQueues(f.tenant)
	// Queue and state of a task that is found are those of the list.
	filter := store.ListFilter{TaskSearch: *f.TaskSearch}
	filter.Command, filter.State = "", ""
	for i := range queues {
		q := &queues[i]
		counts := [...]int64{
			store.ListReady: q.Ready + q.Limited, store.ListDelayed: q.Delayed, store.ListInProgress: q.InProgress, store.ListDead: q.Dead, store.ListDone: q.Ended,
		}
		for state, count := range counts {
			state := store.ListState(state)
			if count > 0 && f.MatchCommand(q.Command) && (f.Command != "" || !wire.IsSystemCommand(q.Command)) && (f.State == "" || listStates[f.State] == state) {
				f.lists = append(f.lists, store.ListQuery{
					Queue: record.QueueKey{Command: q.Command, Tenant: f.tenant}, State: state, Filter: filter,
				})
			}
		}
	}
	return err
}

// findID reads the one task that can be found.
func (a *api) findID(f *find) error {
	task, err := a.o.Store.ReadTask(f.tenant, f.ID)
	if err == nil && task != nil {
		f.scanned++
		if f.Match(task) {
			f.tasks = []*wire.Task{task}
		}
	}
	return err
}

// run goes through the lists, up to a bound of the page. It leaves out what the client may not
// see.
func (f *find) run(s *store.Store, hidden func(*wire.Task) bool) error {
	f.tasks = slices.DeleteFunc(f.tasks, hidden)
	for len(f.lists) > 0 {
		left := min(findStep, findMostRead-f.scanned)
		if len(f.tasks) == f.limit || left <= 0 || f.bytes >= listMostBytes || !time.Now().Before(f.until) {
			return nil
		}
		q := &f.lists[0]
		q.After, q.Limit, q.MostRead, q.MostBytes = f.after, f.limit-len(f.tasks), left, listMostBytes-f.bytes
		page, err := s.ListTasks(q)
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			f.bytes += len(t.Payload) + len(t.Error)
		}
		f.tasks = append(f.tasks, slices.DeleteFunc(page.Tasks, hidden)...)
		f.scanned += page.Read
		if f.after = page.Places; f.after == nil {
			f.lists = f.lists[1:]
		}
	}
	return nil
}

// cursorOf is what a cursor of the search belongs to.
func (f *find) cursorOf() record.QueueKey {
	return record.QueueKey{Command: f.Command + "\n" + f.State + "\n" + string(f.Labels), Tenant: f.tenant}
}

// head is the place of a list among the lists: they may be others at the next page.
func head(q *store.ListQuery) store.ListPlace {
	return append(store.ListPlace(q.Queue.Command), byte(q.State))
}

// cursor says where the next page goes on: in which list, and behind which places. It is "" if
// there is nothing left to look at.
func (f *find) cursor() string {
	if len(f.lists) == 0 {
		return ""
	}
	return encodeCursor(f.cursorOf(), findList, append([]store.ListPlace{head(&f.lists[0])}, f.after...))
}

// goOn leaves out what is before a cursor.
func (f *find) goOn(cursor string) *wire.Error {
	places, refusal := decodeCursor(cursor, f.cursorOf(), findList)
	if refusal != nil || len(places) == 0 || len(places[0]) == 0 {
		return badCursor
	}
	at := slices.IndexFunc(f.lists, func(q store.ListQuery) bool { return string(head(&q)) >= string(places[0]) })
	if at < 0 {
		at = len(f.lists)
	}
	f.lists = f.lists[at:]
	if len(places) > 1 && len(f.lists) > 0 && string(head(&f.lists[0])) == string(places[0]) {
		f.after = places[1:]
	}
	return nil
}
