package wire

import (
	"slices"
	"strings"
)

// listStates are the states of tasks in lists and searches.
var listStates = []string{StateReady, StateDelayed, StateInProgress, StateDead, StateDone}

// TaskSearch selects tasks of a tenant in all its queues: those that pass all its fields. The
// zero value selects all. Of its TaskFilter a search has Worker, ErrorPart, PayloadPart,
// Labels, CreatedBeforeMs and MinAttempts.
type TaskSearch struct {
	ID TaskID
	// Command is the name of a queue, or a prefix of names that ends with ".*".
	Command string
	// State is one of ready, delayed, inProgress, dlq and done.
	State string
	TaskFilter
}

// Match reports whether the search selects a task. Any goroutine may call it.
func (s *TaskSearch) Match(t *Task) bool {
	return s.Takes(t) && (!s.AsksPayload() || s.TakesPayload(t.Payload))
}

// Takes is Match for a task without its payload: it leaves out what the search asks of that.
func (s *TaskSearch) Takes(t *Task) bool {
	if !s.ID.IsZero() && s.ID != t.ID || s.State != "" && s.State != t.Location.State() {
		return false
	}
	return s.MatchCommand(t.Command) && s.TaskFilter.Takes(t)
}

// MatchCommand reports whether the search selects tasks of a queue.
func (s *TaskSearch) MatchCommand(command string) bool {
	prefix, isPrefix := strings.CutSuffix(s.Command, "*")
	return s.Command == "" || command == s.Command || isPrefix && strings.HasPrefix(command, prefix)
}

// AsksPrivate reports whether the search tells its client something about payloads or
// errors.
func (s *TaskSearch) AsksPrivate() bool { return s.ErrorPart != "" || s.AsksPayload() }

// State is the word for tasks in that place, in lists and searches.
func (l Location) State() string {
	switch l {
	case LocationPending, LocationLimited:
		return StateReady
	case LocationDelayed:
		return StateDelayed
	case LocationInProgress:
		return StateInProgress
	case LocationDead:
		return StateDead
	}
	return StateDone
}

// LocationOf is the place of the tasks in a state of lists, "" for another word.
func LocationOf(state string) Location {
	for _, l := range [...]Location{LocationPending, LocationDelayed, LocationInProgress, LocationDead, LocationNone} {
		if l.State() == state {
			return l
		}
	}
	return ""
}

var (
	searchCommandRule = textRule{code: CodeInvalidCommand, high: MaxCommandBytes + len(".*"), filled: true, problem: func(pattern string) string {
		return commandProblem(strings.TrimSuffix(pattern, ".*"))
	}}
	searchStateRule = textRule{code: CodeInvalidArgument, high: MaxCommandBytes, filled: true, problem: func(state string) string {
		if slices.Contains(listStates, state) {
			return ""
		}
		return "must be one of " + strings.Join(listStates, ", ")
	}}
	searchAgeRule = textRule{code: CodeInvalidTime, high: MaxCommandBytes, filled: true, problem: func(age string) string {
		if _, ok := ParseDuration(age); ok {
			return ""
		}
		return "must be " + DurationForm
	}}
	searchShape = shapeOf(new([]string), func(c *coder) { new(TaskSearch).members(c, 0) })
)

// members reads a search; nothing writes one.
func (s *TaskSearch) members(c *coder, nowMs int64) {
	var labels []string
	var age string
	c.optTaskID(`,"id":`, &s.ID)
	c.texts(`,"label":`, &labels)
	c.text(`,"command":`, &s.Command, &searchCommandRule)
	c.text(`,"state":`, &s.State, &searchStateRule)
	c.text(`,"error~":`, &s.ErrorPart, &filterTextRule)
	c.text(`,"payload~":`, &s.PayloadPart, &filterTextRule)
	c.text(`,"worker":`, &s.Worker, &filterTextRule)
	c.text(`,"olderThan":`, &age, &searchAgeRule)
	integer(c, `,"attempts>":`, &s.MinAttempts, true, &filterCountRule)
	if c.in.err == nil {
		s.Labels, c.in.err = MakeLabels(labels)
	}
	if d, ok := ParseDuration(age); ok {
		s.CreatedBeforeMs = max(1, nowMs-d.Milliseconds()+1) // so long ago, or longer
	}
}

// SearchParameters are the names of the members of a search.
func SearchParameters() []string { return slices.Clone(*searchShape.names) }

// ParseTaskSearch reads a search from a JSON object of the parameters of GET /admin/tasks:
// label is a list of texts like name=value, attempts> a number, every other one a text. nowMs
// is the time from which olderThan is counted, in Unix milliseconds. Any goroutine may call
// it.
func ParseTaskSearch(body []byte, nowMs int64) (*TaskSearch, *Error) {
	o, s := searchShape.object(), &TaskSearch{}
	o.scanBody(body, searchShape.bits)
	s.members(&coder{in: &o, shape: searchShape}, nowMs)
	if o.err != nil {
		return nil, o.err
	}
	return s, nil
}
