package lease

import (
	"testing"

	"codeq/record"
	"codeq/wire"
)

func TestEmptySessionListsAreForgotten(t *testing.T) {
	table := New()
	for n := range byte(100) {
		e := &Entry{Task: &record.Task{ID: wire.TaskID{n}}, Lease: record.Lease{Session: wire.SessionID{n + 1}}}
		table.Grant(e, 1)
		table.Bind(e, wire.SessionID{n + 101})
		table.Remove(e)
	}
	if len(table.sessions) != 0 || len(table.entries) != 0 {
		t.Fatalf("%d sessions and %d entries are left", len(table.sessions), len(table.entries))
	}
}
