package crash

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"codeq/wire"
)

// verb is what was asked, or what may have happened by itself.
type verb int

const (
	enqueue   verb = iota
	read           // the task, or its result
	grant          // a delivery arrived at a worker
	complete       // a result
	giveBack       // nack, abandon, release
	heartbeat      // of one delivery
	callOff        // cancel, by whoever posts
	lapse          // nobody asks for it: the delivery ends without its worker
)

var verbNames = []string{"enqueue", "read", "grant", "complete", "give back", "heartbeat", "cancel", "lapse"}

// way is how a question went to the server.
type way int

const (
	bySession way = iota
	byHTTP
	inBatch // one of many in one request
)

var wayNames = []string{"", " over HTTP", " in a batch"}

// input is one question about one task.
type input struct {
	verb  verb
	by    way
	token wire.Token
	// delivery is the number of a grant.
	delivery int
	// status and result are what a worker says of its task.
	status wire.Status
	result string
	// costs says that what is given back counts as a failed attempt.
	costs bool
}

// output is the answer. The zero one says that it was done.
type output struct {
	// unknown: no answer came. unsent: nobody was there to ask, so that nothing
	// can have happened.
	unknown bool
	unsent  bool
	code    wire.Code
	id      wire.TaskID

	// replayed answers an enqueue; quiet is an answer that does not tell whether
	// it was.
	replayed bool
	quiet    bool

	// The task as it was read or delivered; result and reason only if they were
	// asked for.
	status     wire.Status
	deliveries int
	attempts   int
	result     string
}

// String tells an operation for people.
func (in input) String() string {
	s := verbNames[in.verb] + wayNames[in.by]
	if !in.token.IsZero() {
		s += " " + in.token.String()[:6]
	}
	if in.verb == grant {
		s += fmt.Sprintf(" as delivery %d", in.delivery)
	}
	return s + " " + string(in.status) + in.result
}

// String tells an answer for people.
func (out output) String() string {
	switch {
	case out.unknown:
		return "no answer"
	case out.code != "":
		return string(out.code)
	}
	s := "done"
	if out.replayed {
		s = "replayed"
	}
	if out.status != "" {
		s = fmt.Sprintf("%s, %d deliveries, %d attempts %s", out.status, out.deliveries, out.attempts, out.result)
	}
	return s
}

// history is what all clients noted, task by task. Any goroutine.
type history struct {
	began time.Time

	mu    sync.Mutex
	tasks map[string][]porcupine.Operation
	// ends says from when on each delivery may have ended by itself.
	ends map[wire.Token]*ending
	// known are the tasks whose id somebody has heard, in that order.
	known []known
	ids   map[wire.TaskID]bool
}

// known is a task that can be read.
type known struct {
	label string
	id    wire.TaskID
}

// ending is a lapse that may come.
type ending struct {
	label string
	from  int64
}

func newHistory() *history {
	return &history{
		began: time.Now(),
		tasks: make(map[string][]porcupine.Operation),
		ends:  make(map[wire.Token]*ending),
		ids:   make(map[wire.TaskID]bool),
	}
}

// now is the time of the notes, in nanoseconds.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// note writes down what was asked about a task since call, and the answer that
// came just now. What was never asked, and what asked only to know and had no
// answer, explains nothing and would cost the checker time.
func (h *history) note(client int, label string, call int64, in input, out output) {
	if out.unsent || out.unknown && (in.verb == read || in.verb == heartbeat) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	end := int64(time.Since(h.began))
	if out.unknown {
		end = math.MaxInt64
	}
	h.tasks[label] = append(h.tasks[label],
		porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	if !out.id.IsZero() && !h.ids[out.id] {
		h.ids[out.id] = true
		h.known = append(h.known, known{label, out.id})
	}
}

// clockSlack is how far the server's clock and ours may be apart.
const clockSlack = 30 * time.Millisecond

// leased notes until when a delivery is promised, in Unix milliseconds of the
// server, which runs on this machine.
func (h *history) leased(label string, token wire.Token, untilMs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := int64(time.UnixMilli(untilMs).Sub(h.began) - clockSlack)
	if e := h.ends[token]; e == nil {
		h.ends[token] = &ending{label, from}
	} else {
		e.from = max(e.from, from)
	}
}

// left notes that the worker broke off the connection that a delivery came by.
func (h *history) left(token wire.Token) { h.broke(token, h.now()) }

// broke notes that the connection that a delivery came by broke, at since or later. The server ends what
// was not confirmed before.
func (h *history) broke(token wire.Token, since int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.ends[token]; e != nil {
		e.from = min(e.from, since)
	}
}

// all are the operations of every task, with the lapses that may have been.
func (h *history) all() map[string][]porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	for token, e := range h.ends {
		h.tasks[e.label] = append(h.tasks[e.label], porcupine.Operation{
			Input: input{verb: lapse, token: token}, Call: e.from, Output: output{unknown: true}, Return: math.MaxInt64,
		})
	}
	h.ends = nil
	return h.tasks
}

// of is what was noted of one task so far.
func (h *history) of(label string) []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.tasks[label])
}

// census counts the definite answers, so that one sees what a run was made of.
func (h *history) census() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := make(map[string]int)
	for _, operations := range h.tasks {
		for _, o := range operations {
			if in, out := o.Input.(input), o.Output.(output); !out.unknown {
				counts[verbNames[in.verb]+wayNames[in.by]]++
			}
		}
	}
	return fmt.Sprint(counts)
}

// recent is one of the tasks that became known last, chosen by draw below 1.
func (h *history) recent(draw float64) (known, bool) {
	const window = 24
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) == 0 {
		return known{}, false
	}
	from := max(0, len(h.known)-window)
	return h.known[from+int(draw*float64(len(h.known)-from))], true
}

// everything lists all tasks whose id is known.
func (h *history) everything() []known {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]known(nil), h.known...)
}

// tell is the history of one task for people.
func tell(operations []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range operations {
		end := "open"
		if o.Return != math.MaxInt64 {
			end = fmt.Sprintf("%9.3f", float64(o.Return)/1e6)
		}
		fmt.Fprintf(&b, "  %9.3f to %9s ms, client %2d: %v -> %v\n", float64(o.Call)/1e6, end, o.ClientId, o.Input, o.Output)
	}
	return b.String()
}
