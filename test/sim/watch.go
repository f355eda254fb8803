package sim

import (
	"codeq/shard"
	"codeq/wire"
)

// watch: who asks for the end of a task is told at once, or when it ends.
func (m *model) watch(a *shard.Watch) {
	t := m.tasks[a.TaskID]
	switch {
	case t == nil || t.tenant != a.Tenant || t.removed:
		m.refused(a.Asker, wire.CodeTaskNotFound)
	case t.open():
		m.waiters[a.TaskID] = append(m.waiters[a.TaskID], a.Asker)
	default:
		expect[*shard.Ended](m, a.Asker)
	}
}

// unwatch takes the question back.
func (m *model) unwatch(a *shard.Unwatch) {
	left := m.waiters[a.TaskID][:0]
	for _, w := range m.waiters[a.TaskID] {
		if w != a.Asker {
			left = append(left, w)
		}
	}
	m.waiters[a.TaskID] = left
}
