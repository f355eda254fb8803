package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A client asks for lists and figures seldom, so encoding/json reads these answers, by
// the names of the fields without regard to case. Members of a newer server are passed
// over; what is missing keeps its zero value.

// timeMs is Unix milliseconds, written as an RFC 3339 time; null leaves it 0.
type timeMs int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *timeMs) UnmarshalText(text []byte) error {
	ms, ok := ParseTimeMs(string(text))
	if !ok {
		return errors.New("a time must be RFC 3339, such as 2026-01-31T12:00:00Z")
	}
	*t = timeMs(ms)
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler. A cause of a newer server is 0.
func (c *DeadCause) UnmarshalText(text []byte) error {
	*c, _ = parseDeadCause(string(text))
	return nil
}

// UnmarshalJSON reads a task as ParseTask does.
func (t *Task) UnmarshalJSON(data []byte) error {
	read, err := ParseTask(data)
	if err == nil {
		*t = *read
	}
	return err
}

// UnmarshalJSON reads figures as AppendQueueFigures writes them.
func (q *QueueFigures) UnmarshalJSON(data []byte) error {
	type plain QueueFigures
	in := struct {
		*plain
		*QueueSettings
		DLQ           int64
		DLQCauses     map[DeadCause]int64
		OldestReadyAt timeMs
	}{plain: (*plain)(q), QueueSettings: &q.Settings}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	q.Dead, q.OldestReadyAtMs = in.DLQ, int64(in.OldestReadyAt)
	for c := DeadExhausted; c < DeadKinds; c++ {
		q.DeadBy[c] = in.DLQCauses[c]
	}
	if q.Command == "" {
		return errors.New("a queue has no command")
	}
	return nil
}

// UnmarshalJSON reads figures as AppendSessionFigures writes them.
func (f *SessionFigures) UnmarshalJSON(data []byte) error {
	type plain SessionFigures
	in := struct {
		*plain
		SessionID               SessionID
		ConnectedAt, LastSeenAt timeMs
	}{plain: (*plain)(f)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	f.ID, f.ConnectedAtMs, f.LastSeenAtMs = in.SessionID, int64(in.ConnectedAt), int64(in.LastSeenAt)
	if len(f.Commands) == 0 {
		f.Commands = nil
	}
	if f.ID.IsZero() || f.State == "" {
		return errors.New("a session has no sessionId or no state")
	}
	return nil
}

// UnmarshalJSON reads a reason as AppendDeadReason writes it.
func (r *DeadReason) UnmarshalJSON(data []byte) error {
	type plain DeadReason
	in := struct {
		*plain
		NewestTaskID  TaskID
		NewestEndedAt timeMs
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	r.TaskID, r.EndedAtMs = in.NewestTaskID, int64(in.NewestEndedAt)
	if r.TaskID.IsZero() {
		return errors.New("a reason has no newestTaskId")
	}
	return nil
}

// readJSON reads an answer for which there is one word, and then checks that it is whole.
func readJSON(what string, data []byte, answer any, whole func() bool) error {
	err := json.Unmarshal(data, answer)
	if err == nil && !whole() {
		err = errors.New("the list is missing")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// ParseTaskPage reads a page of a list of tasks and the cursor of the next page, empty
// on the last.
func ParseTaskPage(data []byte) (tasks []*Task, cursor string, err error) {
	var page struct {
		Tasks  []*Task
		Cursor string
	}
	err = readJSON("page of tasks", data, &page, func() bool { return page.Tasks != nil && !slices.Contains(page.Tasks, nil) })
	if err != nil {
		return nil, "", err
	}
	return page.Tasks, page.Cursor, nil
}

// ParseSessionList reads the answer of GET /admin/sessions: figures, and the cursor of
// the next page, empty on the last.
func ParseSessionList(data []byte) (list []SessionFigures, cursor string, err error) {
	var page struct {
		Sessions []SessionFigures
		Cursor   string
	}
	if err := readJSON("session list", data, &page, func() bool { return page.Sessions != nil }); err != nil {
		return nil, "", err
	}
	return page.Sessions, page.Cursor, nil
}

// ParseQueueList reads the answer of GET /admin/queues, an object whose member queues
// lists the figures.
func ParseQueueList(data []byte) ([]QueueFigures, error) {
	var list struct{ Queues []QueueFigures }
	if err := readJSON("queue list", data, &list, func() bool { return list.Queues != nil }); err != nil {
		return nil, err
	}
	return list.Queues, nil
}

// ParseQueueFigures reads the answer of GET /admin/queues/{command}.
func ParseQueueFigures(data []byte) (*QueueFigures, error) {
	var f QueueFigures
	if err := readJSON("queue", data, &f, func() bool { return true }); err != nil {
		return nil, err
	}
	return &f, nil
}

// ParseDeadReasons reads the answer of GET …/dlq/reasons.
func ParseDeadReasons(data []byte) (*DeadReasons, error) {
	var all DeadReasons
	if err := readJSON("reasons", data, &all, func() bool { return all.Reasons != nil }); err != nil {
		return nil, err
	}
	return &all, nil
}
