package wire

import (
	"bytes"
	"math"
	"slices"
	"strconv"
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

// The states of tasks that have not ended, for BulkRequest.State. StateWaiting is ready
// and delayed, StateOpen is ready, delayed and in progress.
const (
	StateReady      = "ready"
	StateDelayed    = "delayed"
	StateInProgress = "inProgress"
	StateWaiting    = "waiting"
	StateOpen       = "open"
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

const (
	bulkBefore = iota
	bulkLimit
	bulkWorker
	bulkError
	bulkCursor
	bulkCause
	bulkState
	bulkDryRun
	bulkToPriority
	bulkPriority
	bulkCreatedAfter
	bulkCreatedBefore
	bulkMinAttempts
	bulkKeyPrefix
	bulkMatch
)

var (
	bulkNames = []string{
		bulkBefore: "before", bulkLimit: "limit", bulkWorker: "worker", bulkError: "error", bulkCursor: "cursor", bulkCause: "cause",
		bulkState: "state", bulkDryRun: "dryRun", bulkToPriority: "toPriority", bulkPriority: "priority",
		bulkCreatedAfter: "createdAfter", bulkCreatedBefore: "createdBefore", bulkMinAttempts: "minAttempts",
		bulkKeyPrefix: "keyPrefix", bulkMatch: "match",
	}
	bulkCursorRule = textRule{code: CodeInvalidArgument, high: math.MaxInt}
	toPriorityRule = integerRule{code: CodeInvalidPriority, high: MaxPriority, required: true}
	// bulkBits are the known members of each kind of request.
	bulkBits = [...]uint64{
		BulkDead:   bulkAnyBits | 1<<bulkBefore | 1<<bulkCause,
		BulkCancel: bulkAnyBits | 1<<bulkState,
		BulkRun:    bulkAnyBits,
		BulkMove:   bulkAnyBits | 1<<bulkState | 1<<bulkToPriority,
	}
	bulkAnyBits = filterBits | 1<<bulkLimit | 1<<bulkCursor | 1<<bulkDryRun
)

// BulkParameters are the names of the members of a request of that kind.
func BulkParameters(kind BulkKind) (names []string) {
	for i, name := range bulkNames {
		if bulkBits[kind]&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// ParseBulkRequest reads the body of a request about many tasks of a queue, which may be
// empty. absent has the limit and the causes for a body without them.
func ParseBulkRequest(body []byte, kind BulkKind, absent BulkRequest) (*BulkRequest, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := object{names: bulkNames}
	o.scanBody(body, bulkBits[kind])
	limit := endedLimitRule
	limit.absent = int64(absent.Limit)
	r := &BulkRequest{
		EndedRequest: EndedRequest{BeforeMs: o.beforeMs(bulkBefore), Limit: int(o.integer(bulkLimit, &limit))},
		TaskFilter:   o.filter(),
		Causes:       o.deadCauses(absent.Causes),
		DryRun:       o.trueOrFalse(bulkDryRun),
		Cursor:       o.text(bulkCursor, &bulkCursorRule),
	}
	switch kind {
	case BulkCancel:
		r.State = o.bulkState(bulkStates)
	case BulkRun:
		r.State = StateDelayed
	case BulkMove:
		r.State, r.ToPriority = o.bulkState(bulkStates[:waitingStates]), int(o.integer(bulkToPriority, &toPriorityRule))
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// ParseMoveRequest reads the body of a request to move one task: its new priority.
func ParseMoveRequest(body []byte) (int, *Error) {
	o := object{names: bulkNames}
	o.scanBody(body, 1<<bulkToPriority)
	return int(o.integer(bulkToPriority, &toPriorityRule)), o.err
}

// bulkState reads the state of the tasks; StateWaiting if it is absent.
func (o *object) bulkState(known []string) string {
	if o.given(bulkState) == nil {
		return StateWaiting
	}
	state := o.text(bulkState, &anyTextRule)
	if !slices.Contains(known, state) {
		o.refuse(CodeInvalidArgument, bulkState, "must be one of "+strings.Join(known, ", "))
	}
	return state
}

func (o *object) deadCauses(absent DeadCauses) DeadCauses {
	if o.given(bulkCause) == nil {
		return absent
	}
	causes, refusal := ParseDeadCauses(o.text(bulkCause, &filterTextRule))
	if o.err == nil {
		o.err = refusal
	}
	return causes
}

// AppendBulkRequest appends the body of a request, with cause as the word for its causes.
// It leaves out a limit of 0 and an empty cause.
func AppendBulkRequest(dst []byte, kind BulkKind, r *BulkRequest, cause string) []byte {
	dst = append(dst, '{')
	start := len(dst)
	dst = optTime(dst, `,"before":`, r.BeforeMs)
	if r.Limit != 0 {
		dst = strconv.AppendInt(append(dst, `,"limit":`...), int64(r.Limit), 10)
	}
	dst = optText(dst, `,"cause":`, cause)
	if kind == BulkCancel || kind == BulkMove {
		dst = optText(dst, `,"state":`, r.State)
	}
	if kind == BulkMove {
		dst = appendInt(dst, `,"toPriority":`, int64(r.ToPriority))
	}
	dst = appendFilter(dst, &r.TaskFilter)
	if r.DryRun {
		dst = append(dst, `,"dryRun":true`...)
	}
	dst = optText(dst, `,"cursor":`, r.Cursor)
	if len(dst) > start {
		dst = append(dst[:start], dst[start+1:]...)
	}
	return append(dst, '}')
}

// beforeMs reads a time, 0 if it is absent. A time before 1970 becomes 1, because 0 would
// be no bound.
func (o *object) beforeMs(field int) int64 {
	if o.given(field) == nil {
		return 0
	}
	return max(1, o.timeMs(field, CodeInvalidTime))
}
