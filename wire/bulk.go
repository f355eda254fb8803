package wire

import (
	"math"
	"slices"
	"strings"
)

// BulkRequest selects the tasks of a queue for a request about many of them.
type BulkRequest struct {
	EndedRequest
	TaskFilter
	// Causes are the causes of the dead letters, in a request about dead letters.
	Causes DeadCauses
	// State is the state of the tasks, in any other request.
	State string
	// DryRun asks how many tasks there are, and changes none.
	DryRun bool
	// ToPriority is the new priority, in a move.
	ToPriority int
	// Cursor is where the request before stopped; empty for the beginning.
	Cursor string
}

// The states of tasks. For BulkRequest.State StateWaiting is ready and delayed, and StateOpen
// is ready, delayed and in progress. A list of tasks is of one of the others.
const (
	StateReady      = "ready"
	StateDelayed    = "delayed"
	StateInProgress = "inProgress"
	StateWaiting    = "waiting"
	StateOpen       = "open"
	StateDead       = "dlq"
	StateDone       = "done"
)

// bulkStates are the words for BulkRequest.State, those for waiting tasks first.
var bulkStates = []string{StateWaiting, StateReady, StateDelayed, StateInProgress, StateOpen}

const waitingStates = 3

// BulkKind is what a BulkRequest does with its tasks.
type BulkKind int

// The kinds.
const (
	// BulkDead replays or purges dead letters.
	BulkDead BulkKind = iota
	// BulkCancel cancels tasks, also those in progress.
	BulkCancel
	// BulkRun makes delayed tasks ready now.
	BulkRun
	// BulkMove gives waiting tasks another priority.
	BulkMove
)

var (
	bulkCursorRule = textRule{code: CodeInvalidArgument, high: math.MaxInt}
	toPriorityRule = integerRule{code: CodeInvalidPriority, high: MaxPriority, required: true}
	moveShape      = shapeOf(new([]string), new(move).members)
	bulkShape      = shapeOf(new([]string), func(c *coder) { new(BulkRequest).members(c, BulkDead, new(string), &endedLimitRule) })
	// bulkBits are the known members of each kind of request.
	bulkBits = [...]uint64{
		BulkDead:   bulkShape.without("state", "toPriority"),
		BulkCancel: bulkShape.without("before", "cause", "toPriority"),
		BulkRun:    bulkShape.without("before", "cause", "toPriority", "state"),
		BulkMove:   bulkShape.without("before", "cause"),
	}
)

// members has cause as the word for the causes. It writes what the kind has, and a time and
// a cause in any case: the server refuses them, and would select other tasks without them.
func (r *BulkRequest) members(c *coder, kind BulkKind, cause *string, limit *integerRule) {
	r.EndedRequest.members(c, limit)
	c.optText(`,"cause":`, cause, &filterTextRule)
	if c.in != nil || kind == BulkCancel || kind == BulkMove {
		c.optText(`,"state":`, &r.State, &filterTextRule)
	}
	if c.in != nil && kind != BulkMove {
		c.field(`,"toPriority":`)
	} else if kind == BulkMove {
		integer(c, `,"toPriority":`, &r.ToPriority, true, &toPriorityRule)
	}
	r.TaskFilter.members(c)
	c.boolean(`,"dryRun":`, &r.DryRun, r.DryRun)
	c.optText(`,"cursor":`, &r.Cursor, &bulkCursorRule)
}

// move is the body of a request to move one task.
type move struct{ toPriority int }

func (m *move) members(c *coder) {
	integer(c, `,"toPriority":`, &m.toPriority, true, &toPriorityRule)
}

// BulkParameters are the names of the members of a request of that kind.
func BulkParameters(kind BulkKind) (names []string) {
	for i, name := range *bulkShape.names {
		if bulkBits[kind]&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// ParseBulkRequest reads the body of a request about many tasks of a queue, which may be
// empty. absent has the limit and the causes for a body without them.
func ParseBulkRequest(body []byte, kind BulkKind, absent BulkRequest) (*BulkRequest, *Error) {
	o, r, cause := bulkShape.object(), &BulkRequest{Causes: absent.Causes}, ""
	o.scanBody(orEmptyObject(body), bulkBits[kind])
	limit := endedLimitRule
	limit.absent = int64(absent.Limit)
	r.members(&coder{in: &o, shape: bulkShape}, kind, &cause, &limit)
	if o.err == nil && cause != "" {
		r.Causes, o.err = ParseDeadCauses(cause)
	}
	switch kind {
	case BulkCancel:
		o.checkState(&r.State, bulkStates)
	case BulkRun:
		r.State = StateDelayed
	case BulkMove:
		o.checkState(&r.State, bulkStates[:waitingStates])
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// ParseMoveRequest reads the body of a request to move one task: its new priority.
func ParseMoveRequest(body []byte) (int, *Error) {
	o, m := moveShape.object(), move{}
	o.scanBody(body, moveShape.bits)
	m.members(&coder{in: &o, shape: moveShape})
	return m.toPriority, o.err
}

// checkState checks the state of the tasks; StateWaiting if it is absent.
func (o *object) checkState(state *string, known []string) {
	if *state == "" {
		*state = StateWaiting
	}
	if !slices.Contains(known, *state) {
		o.refuseNamed(CodeInvalidArgument, "state", "must be one of "+strings.Join(known, ", "))
	}
}

// AppendBulkRequest appends the body of a request, with cause as the word for its causes.
// It leaves out a limit of 0 and an empty cause.
func AppendBulkRequest(dst []byte, kind BulkKind, r *BulkRequest, cause string) []byte {
	c := writing(&dst)
	r.members(&c, kind, &cause, &endedLimitRule)
	return c.done()
}
