package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

// meadow is a queue of many tasks in every state, over all shards, in the order
// that each shard has them.
type meadow struct {
	store  *Store
	queue  record.QueueKey
	orders [ListDone + 1][][]*record.Task
}

func newMeadow(t *testing.T, shards, tasks int) *meadow {
	t.Helper()
	m := &meadow{queue: record.QueueKey{Command: "c", Tenant: "t"}}
	m.store = openIn(t, vfs.NewMem(), func(o *Options) { o.Shards = shards })
	chance := rand.New(rand.NewPCG(1, uint64(tasks)))
	for shard := range shards {
		p := plantIn(m.store, shard)
		for state := range m.orders {
			m.orders[state] = append(m.orders[state], nil)
		}
		for n := range tasks {
			p.marks.TimeMs += int64(chance.IntN(3))
			p.priority = chance.IntN(3) * 4
			state := ListState(chance.IntN(len(m.orders)))
			r := p.plant(m.queue, state)
			r.Error = []string{"", "disk full", "no such file: " + fmt.Sprint(n)}[chance.IntN(3)]
			r.LastWorkerID = []string{"ada", "bob"}[chance.IntN(2)]
			p.span.batch.PutTask(r)
			m.orders[state][shard] = append(m.orders[state][shard], r)
			if chance.IntN(10) == 0 { // a moment of ended tasks has several keys then
				p.settle(t)
			}
		}
		// Neighbours in every order, which no page may show.
		for _, q := range []record.QueueKey{{Command: "c", Tenant: "s"}, {Command: "c", Tenant: "u"}, {Command: "b", Tenant: "t"}, {Command: "d", Tenant: "t"}, {Command: "cc", Tenant: "t"}, {Command: "c", Tenant: "tt"}} {
			for state := range m.orders {
				p.plant(q, ListState(state))
			}
		}
		p.settle(t)
		for state := range m.orders {
			slices.SortFunc(m.orders[state][shard], inOrder(ListState(state)))
		}
	}
	return m
}

// plant makes a task in a state.
func (p *planter) plant(q record.QueueKey, state ListState) *record.Task {
	switch state {
	case ListReady:
		return p.pending(q, "")
	case ListDelayed:
		return p.delayed(q)
	case ListInProgress:
		r, _ := p.leased(q, "")
		return r
	case ListLimited:
		return p.limited(q)
	case ListDead:
		return p.ended(q, wire.StatusFailed, true, "")
	default:
		return p.ended(q, []wire.Status{wire.StatusCompleted, wire.StatusCancelled}[p.marks.TimeMs%2], false, "")
	}
}

// inOrder is the order within one shard.
func inOrder(state ListState) func(a, b *record.Task) int {
	return func(a, b *record.Task) int {
		if state == ListLimited {
			return cmp.Or(cmp.Compare(a.ConcurrencyKey, b.ConcurrencyKey), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Seq, b.Seq))
		}
		if state == ListReady {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Seq, b.Seq))
		}
		return amongShards(state)(a, b)
	}
}

// amongShards is the order between the heads of shards.
func amongShards(state ListState) func(a, b *record.Task) int {
	return func(a, b *record.Task) int {
		byID := bytes.Compare(a.ID[:], b.ID[:])
		switch state {
		case ListReady, ListLimited:
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), byID)
		case ListDelayed:
			return cmp.Or(cmp.Compare(a.DueAtMs, b.DueAtMs), byID)
		case ListInProgress:
			return byID
		default:
			return -cmp.Or(cmp.Compare(a.EndedAtMs, b.EndedAtMs), byID)
		}
	}
}

// merged is the whole list of a state.
func (m *meadow) merged(state ListState) (all []*record.Task) {
	if state == ListReady {
		defer func() { all = append(all, m.merged(ListLimited)...) }()
	}
	rest := slices.Clone(m.orders[state])
	for {
		best := -1
		for i := range rest {
			if len(rest[i]) > 0 && (best < 0 || amongShards(state)(rest[i][0], rest[best][0]) < 0) {
				best = i
			}
		}
		if best < 0 {
			return all
		}
		all = append(all, rest[best][0])
		rest[best] = rest[best][1:]
	}
}

// all reads every page of a query and says how many there were.
func (m *meadow) all(t *testing.T, q ListQuery) (ids []wire.TaskID, pages int) {
	t.Helper()
	q.Queue = m.queue
	for {
		page, err := m.store.ListTasks(&q)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		if len(page.Tasks) > q.Limit || page.Read > q.MostRead {
			t.Fatalf("a page of %d tasks from %d records, limits %d and %d", len(page.Tasks), page.Read, q.Limit, q.MostRead)
		}
		for _, task := range page.Tasks {
			ids = append(ids, task.ID)
		}
		if page.Places == nil {
			return ids, pages
		}
		q.After = page.Places
	}
}

func idsOf(records []*record.Task, keep func(*record.Task) bool) (ids []wire.TaskID) {
	for _, r := range records {
		if keep == nil || keep(r) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func TestPagesAreTheWholeListInQueueOrder(t *testing.T) {
	for _, shards := range []int{1, 3} {
		m := newMeadow(t, shards, 200)
		for state := ListReady; state <= ListDone; state++ {
			want := idsOf(m.merged(state), nil)
			for _, limit := range []int{1, 2, 7, 1000} {
				got, pages := m.all(t, ListQuery{State: state, Limit: limit, MostRead: 1000, MostBytes: 1 << 20})
				if !slices.Equal(got, want) {
					t.Errorf("%d shards, state %d, pages of %d: got %d tasks, want %d, or another order", shards, state, limit, len(got), len(want))
				}
				if most := (len(want) + limit - 1) / limit; pages > most {
					t.Errorf("%d tasks took %d pages of %d", len(want), pages, limit)
				}
			}
		}
	}
}

func TestFiltersLeaveOutAndReadNoMoreThanTheirBound(t *testing.T) {
	m := newMeadow(t, 3, 300)
	for _, c := range []struct {
		name   string
		state  ListState
		filter ListFilter
		keep   func(*record.Task) bool
	}{
		{"status", ListDone, ListFilter{Status: wire.StatusCancelled}, func(r *record.Task) bool { return r.Status == wire.StatusCancelled }},
		{"status of leased", ListInProgress, ListFilter{Status: wire.StatusPending}, func(*record.Task) bool { return false }},
		{"last worker", ListDead, ListFilter{TaskFilter: wire.TaskFilter{Worker: "ada"}}, func(r *record.Task) bool { return r.LastWorkerID == "ada" }},
		{"worker of leased", ListInProgress, ListFilter{TaskFilter: wire.TaskFilter{Worker: "w1"}}, func(*record.Task) bool { return true }},
		{"error", ListReady, ListFilter{TaskFilter: wire.TaskFilter{ErrorPart: "such file"}}, func(r *record.Task) bool { return len(r.Error) > 9 }},
		{"both", ListDead, ListFilter{TaskFilter: wire.TaskFilter{Worker: "bob", ErrorPart: "disk"}}, func(r *record.Task) bool {
			return r.LastWorkerID == "bob" && r.Error == "disk full"
		}},
	} {
		want := idsOf(m.merged(c.state), c.keep)
		got, _ := m.all(t, ListQuery{State: c.state, Filter: c.filter, Limit: 5, MostRead: 10, MostBytes: 1 << 20})
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d tasks, want %d", c.name, len(got), len(want))
		}
	}
}

func TestPageEndsWhenItsTextsAreLarge(t *testing.T) {
	m := newMeadow(t, 2, 50)
	page, err := m.store.ListTasks(&ListQuery{Queue: m.queue, Limit: 50, MostRead: 50, MostBytes: 25})
	if err != nil || page.Places == nil {
		t.Fatalf("%+v, %v", page, err)
	}
	bytes := 0
	for _, task := range page.Tasks {
		if bytes >= 25 {
			t.Errorf("a page of 25 bytes goes on behind %d", bytes)
		}
		bytes += len(task.Payload) + len(task.Error)
	}
	if bytes < 25 {
		t.Errorf("a page of 25 bytes ends at %d", bytes)
	}
}

func TestPlaceOfAnotherListIsRefused(t *testing.T) {
	m := newMeadow(t, 2, 10)
	for _, after := range [][]ListPlace{
		{}, {nil}, {nil, nil, nil}, {ListPlace("x"), nil}, {nil, make(ListPlace, 24)},
		{append(ListPlace{wire.MaxPriority + 1}, make(ListPlace, 24)...), nil},
	} {
		if _, err := m.store.ListTasks(&ListQuery{Queue: m.queue, After: after, Limit: 1, MostRead: 1, MostBytes: 1}); !errors.Is(err, ErrListPlace) {
			t.Errorf("places %q: %v", after, err)
		}
	}
}

func TestDeletedKeysOfAnEmptiedQueueAreNotWalkedOver(t *testing.T) {
	s := openIn(t, vfs.NewMem(), func(o *Options) { o.Shards = 1 })
	p, q := plantIn(s, 0), record.QueueKey{Command: "c", Tenant: "t"}
	var dead []*record.Task
	for range 5000 {
		p.marks.TimeMs++
		dead = append(dead, p.ended(q, wire.StatusFailed, true, ""))
	}
	p.settle(t)
	last := dead[len(dead)-1]
	for _, r := range dead[:len(dead)-1] {
		p.span.batch.DeleteTimed(q, record.FamilyDead, record.TimedKey{AtMs: r.EndedAtMs, ID: r.ID})
		p.span.batch.DeleteTask(r.ID, record.Absent{})
	}
	*p.figures(q) = record.Counters{Dead: 1, DeadWatermarkMs: dead[0].EndedAtMs}
	p.figures(q).DeadBy[last.DeadCause]++
	p.settle(t)
	before := s.figures.scanSteps.Get()
	page, err := s.ListTasks(&ListQuery{Queue: q, State: ListDead, Limit: 10, MostRead: 10})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != last.ID || page.Places != nil {
		t.Fatalf("got %+v, %v", page, err)
	}
	// Its neighbours are 4,999 deleted keys, which one step more would walk over.
	if steps := s.figures.scanSteps.Get() - before; steps > 10 {
		t.Errorf("the list makes %d steps", steps)
	}
}
