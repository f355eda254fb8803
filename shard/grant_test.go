package shard

import (
	"slices"
	"testing"

	"codeq/wire"
)

// A long backlog keeps nobody waiting: while rounds hand out less than there is
// room for, tenants take turns, and so do the queues of each.
func TestNobodyWaitsForTheBacklogOfAnother(t *testing.T) {
	tenants, commands := []string{"long", "some", "few"}, []string{"a", "b"}
	backlogs := map[[2]string]int{
		{"long", "a"}: 200, {"long", "b"}: 20, {"some", "a"}: 20, {"some", "b"}: 40, {"few", "a"}: 5, {"few", "b"}: 5,
	}
	for grants := 1; grants <= 7; grants++ {
		w := newScriptWorld(t)
		w.limits = Limits{Grants: grants}
		w.load()
		var messages []Message
		n := 0
		for _, tenant := range tenants {
			for _, command := range commands {
				for range backlogs[[2]string{tenant, command}] {
					n++
					messages = append(messages, &Enqueue{ID: w.taskID(n), Tenant: tenant, EnqueueRequest: wire.EnqueueRequest{
						Command: command, Payload: []byte("1"), MaxAttempts: 3,
					}})
				}
			}
		}
		for i, tenant := range tenants {
			consumer := newScriptConsumer(Consumer{ID: wire.SessionID{byte(i + 1)}, Tenant: tenant, Sink: w.producer(tenant)}, func(Message) {})
			consumer.SetWindow(1000)
			messages = append(messages, &Subscribe{Consumer: consumer.Consumer, Commands: []string{wire.AllCommands}, LeaseForMs: 60_000})
		}
		var served [][2]string
		for len(served) < n {
			out := w.core.Round(w.nowMs, messages)
			messages = messages[out.Taken:]
			if _, err := w.store.Span(0).Apply(); err != nil {
				t.Fatal(err)
			}
			for _, a := range out.Effects {
				if g, ok := a.Effect.(*Granted); ok {
					served = append(served, [2]string{g.Task.TenantID, g.Task.Command})
				}
			}
		}
		mustTakeTurns(t, served, backlogs)
	}
}

// mustTakeTurns says that no tenant with tasks saw another served twice in between,
// and no queue another one of its tenant.
func mustTakeTurns(t *testing.T, served [][2]string, backlogs map[[2]string]int) {
	t.Helper()
	for i, now := range served {
		for queue := range backlogs {
			if !slices.Contains(served[i:], queue) || queue == now {
				continue
			}
			between := served[:i]
			same := func(other [2]string) bool { return other[0] == queue[0] }
			if queue[0] == now[0] {
				same = func(other [2]string) bool { return other == queue }
			}
			again := func(other [2]string) bool { return other[0] == now[0] && (queue[0] != now[0] || other[1] == now[1]) }
			for n := len(between) - 1; n >= 0 && !same(between[n]); n-- {
				if again(between[n]) {
					t.Fatalf("%v was served twice while %v had tasks: %v", now, queue, served[n:i+1])
				}
			}
		}
	}
}
