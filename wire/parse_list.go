package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A client asks for lists seldom, so encoding/json reads them. Members of a newer server
// are passed over.

// UnmarshalJSON reads a task as ParseTask does.
func (t *Task) UnmarshalJSON(data []byte) error { return taskShape.read("task", data, t.overHTTP) }

// UnmarshalJSON reads figures as AppendQueueFigures writes them.
func (q *QueueFigures) UnmarshalJSON(data []byte) error {
	return figuresShape.read("queue", data, q.members)
}

// UnmarshalJSON reads figures as AppendSessionFigures writes them.
func (f *SessionFigures) UnmarshalJSON(data []byte) error {
	return sessionShape.read("session", data, f.members)
}

// UnmarshalJSON reads figures as a frame of kind server has them.
func (f *ServerFigures) UnmarshalJSON(data []byte) error {
	return serverShape.read("server", data, f.members)
}

// UnmarshalJSON reads a need as a frame of kind server has it.
func (n *Need) UnmarshalJSON(data []byte) error { return needShape.read("need", data, n.members) }

// UnmarshalJSON reads a reason as AppendDeadReason writes it.
func (r *DeadReason) UnmarshalJSON(data []byte) error {
	return reasonShape.read("reason", data, r.members)
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
	tasks, _, cursor, err = ParseFoundPage(data)
	return tasks, cursor, err
}

// ParseFoundPage is ParseTaskPage for a search, whose pages also say how many tasks were looked
// at.
func ParseFoundPage(data []byte) (tasks []*Task, scanned int, cursor string, err error) {
	var page struct {
		Tasks   []*Task
		Scanned int
		Cursor  string
	}
	err = readJSON("page of tasks", data, &page, func() bool { return page.Tasks != nil && !slices.Contains(page.Tasks, nil) })
	if err != nil {
		return nil, 0, "", err
	}
	return page.Tasks, page.Scanned, page.Cursor, nil
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
