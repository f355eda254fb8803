package httpapi

import (
	"net/http"
	"strconv"

	"codeq/internal/auth"
)

const (
	// headerRead with the value readStale asks a node for what it has itself, which may be old.
	headerRead = "Codeq-Read"
	readStale  = "stale"
	// headerReadAge is how old such an answer may be, in milliseconds; no other answer has it.
	headerReadAge = "Codeq-Read-Age"
)

// TakesStale reports whether a request only reads, and is content with what the node has that it
// comes to.
func TakesStale(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get(headerRead) == readStale
}

// stale are the paths of such requests at a node that follows. The leader answers those about what
// only it knows.
func (a *api) stale(o *FollowerOptions) []resource {
	here := func(v verb, read func(*api, *call) answer) []verb {
		v.method, v.stale = http.MethodGet, true
		v.handle = func(c *call) answer { return a.readHere(c, o, read) }
		return []verb{v}
	}
	return []resource{
		{base + "/tasks/{id}", here(verb{holds: anyBytes}, (*api).getTask)},
		{base + "/tasks/{id}/result", here(verb{contents: true, holds: anyBytes, query: resultQuery}, (*api).getResult)},
		{base + "/admin/queues", here(verb{scope: auth.ScopeView, holds: anyBytes, query: []string{"system"}}, (*api).getQueues)},
		{base + "/admin/queues/{command}", here(verb{scope: auth.ScopeView}, (*api).getQueue)},
		{base + "/admin/queues/{command}/tasks", here(verb{scope: auth.ScopeView, holds: pageBytes, query: tasksQuery}, (*api).getTasks)},
		{base + "/admin/queues/{command}/dlq/reasons", here(verb{scope: auth.ScopeView, contents: true, holds: pageBytes, query: reasonsQuery}, (*api).getReasons)},
	}
}

// readHere answers from the database of this node. Nothing that only shards know is added: why a
// task waits, when its lease ends, which settings are in force.
func (a *api) readHere(c *call, o *FollowerOptions, read func(*api, *call) answer) answer {
	age := o.Age()
	look, err := o.Store.Look()
	if err != nil {
		return a.failedRead(c, err)
	}
	at := &api{o: a.o}
	at.o.Store = look
	ans := read(at, c)
	if err := look.Close(); err != nil {
		return a.failedRead(c, err)
	}
	c.w.Header().Set(headerReadAge, strconv.FormatInt(age.Milliseconds(), 10))
	return ans
}
