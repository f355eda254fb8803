package watch

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/record"
	"codeq/wire"
)

// shelf is a model of a queue, with a subscriber that has a page of its ready tasks, or with a
// filter a page of tasks in any state.
type shelf struct {
	t     *testing.T
	r     *rand.Rand
	log   *fakeLog
	board *Board
	nowMs int64
	// tasks are all that exist, ready and others; Attempts is raised by each change.
	tasks []*wire.Task
	// moved are the tasks that were not ready since the snapshot.
	moved map[wire.TaskID]bool

	sub   *Subscriber
	ask   *wire.WatchSubscribe
	any   bool
	whole bool
	begun bool
	first []wire.TaskID
	rows  map[wire.TaskID]int
	above int64
}

// listed reports whether a task at a place is in the list.
func (h *shelf) listed(l wire.Location) bool {
	return l == wire.LocationPending || h.any && l != ""
}

func (h *shelf) page() (page *wire.WatchSnapshot) {
	page = &wire.WatchSnapshot{}
	var more bool
	if page.Tasks, more = h.list(); more {
		page.Cursor = "more"
	}
	return page
}

func (h *shelf) list() (list []*wire.Task, more bool) {
	for _, t := range h.tasks {
		if h.listed(t.Location) {
			list = append(list, new(*t))
		}
	}
	slices.SortFunc(list, func(a, b *wire.Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), slices.Compare(a.ID[:], b.ID[:]))
	})
	if len(list) > h.ask.Limit {
		return list[:h.ask.Limit], true
	}
	return list, false
}

// step lets something happen to a task.
func (h *shelf) step() {
	event := func(t *wire.Task, from, to wire.Location) {
		t.Location = to
		t.Attempts++
		if !h.listed(to) {
			h.moved[t.ID] = true
		}
		h.log.add(int(t.ID[15])%len(h.log.last), events.Record{AtMs: h.nowMs, Task: t.ID, From: from, To: to, Cause: record.CauseNack})
	}
	k := h.r.IntN(4)
	if k == 0 || len(h.tasks) == 0 {
		t := &wire.Task{ID: wire.TaskID{byte(h.r.Int()), byte(h.r.Int()), 15: byte(h.r.Int())}, Command: "a0.b0", Priority: h.r.IntN(3), Error: "e"}
		t.Progress = &wire.TaskProgress{ProgressRequest: wire.ProgressRequest{Percent: 40, HasPercent: true, Note: "n"}, AtMs: h.nowMs, Delivery: 1}
		h.tasks = append(h.tasks, t)
		event(t, "", wire.LocationPending)
		return
	}
	i := h.r.IntN(len(h.tasks))
	switch t := h.tasks[i]; {
	case k == 1 && t.Location == wire.LocationPending:
		event(t, t.Location, t.Location)
	case k == 2:
		h.tasks = slices.Delete(h.tasks, i, i+1)
		event(t, t.Location, "")
	case t.Location == wire.LocationPending:
		event(t, t.Location, wire.LocationInProgress)
	default:
		event(t, t.Location, wire.LocationPending)
	}
}

func (h *shelf) read() bool {
	list := frames(h.t, h.sub.Next(h.nowMs))
	for _, f := range list {
		var state *wire.WatchState
		switch f := f.(type) {
		case *wire.WatchSnapshot:
			if !h.begun {
				h.rows, h.first = map[wire.TaskID]int{}, nil
			}
			h.begun, state = f.More, &f.WatchState
			for _, t := range f.Tasks {
				h.first = append(h.first, t.ID)
			}
		case *wire.WatchTick:
			state = &f.WatchState
			for _, t := range f.Tasks {
				if _, has := h.rows[t.ID]; !has {
					h.t.Fatalf("row %v changed and never came", t.ID)
				}
			}
		default:
			continue
		}
		for _, t := range state.Tasks {
			h.rows[t.ID] = t.Attempts
			if t.Error != "" || t.Progress.Note != "" || t.Progress.Percent != 40 {
				h.t.Fatal("an error or a note for who may not see it, or no percent")
			}
		}
		for _, left := range state.Left {
			id, _ := wire.ParseTaskID(left)
			delete(h.rows, id)
		}
		if state.Above != nil == (h.ask.Filter != nil) {
			h.t.Fatalf("above of %+v is %v", h.ask, state.Above)
		}
		if state.Above != nil {
			h.above = *state.Above
		}
	}
	return len(list) > 0
}

// check compares the rows of the client with the list.
func (h *shelf) check() {
	list, _ := h.list()
	byID := map[wire.TaskID]*wire.Task{}
	for _, t := range h.tasks {
		byID[t.ID] = t
	}
	for id, attempts := range h.rows {
		if t := byID[id]; t == nil || !h.listed(t.Location) || t.Attempts != attempts {
			h.t.Fatalf("the client has row %v as of change %d, it is %+v", id, attempts, t)
		}
	}
	for _, id := range h.first {
		if _, has := h.rows[id]; !has && !h.moved[id] {
			h.t.Fatalf("row %v was always there, and the client has it no more", id)
		}
	}
	if h.ask.Filter != nil {
		return
	}
	has := func(t *wire.Task) bool { _, has := h.rows[t.ID]; return has }
	end := len(list)
	for i, t := range list {
		if has(t) && !h.whole {
			end = i
		}
	}
	before := slices.DeleteFunc(list[:end], has)
	if h.above != int64(len(before)) {
		h.t.Fatalf("%d tasks are above, the client heard of %d", len(before), h.above)
	}
}

// filter makes half of the pages ones with a filter, and half of these ones of any state.
func (h *shelf) filter() {
	if h.r.IntN(2) == 0 {
		h.ask.Filter = []byte("{}")
		if h.any = h.r.IntN(2) == 0; h.any {
			h.ask.State = ""
		}
	}
}

// TestWhoHasAPageKnowsItsRows: whatever happens to the tasks of a page, and however late it is read
// again, its rows are those that stayed, as they are now, and above counts those that came.
func TestWhoHasAPageKnowsItsRows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		h := &shelf{t: t, r: r, log: newFakeLog(1+r.IntN(3), 10+r.IntN(300)), nowMs: 1_000_000, moved: map[wire.TaskID]bool{}}
		h.board = NewBoard(h.log.facts())
		name := queueName(0)
		h.board.Set(name, &wire.Figures{}, 0)
		h.ask = &wire.WatchSubscribe{ID: "p", Kind: wire.WatchPage, Command: name.Command, State: wire.StateReady, Limit: 1 + r.IntN(20)}
		h.filter()
		for range r.IntN(200) {
			h.step()
		}
		h.board.At = h.log.Positions()
		var refusal *wire.Error
		if h.sub, refusal = NewSubscriber(h.board, principal(name.Tenant, auth.ScopeView), h.nowMs); refusal != nil {
			t.Fatal(refusal)
		}
		// Between the positions and the list something may happen.
		read := func() (shows *Shows) {
			shows = &Shows{At: h.log.Positions()}
			for range r.IntN(3) {
				h.step()
			}
			shows.Page = h.page()
			return shows
		}
		h.moved = map[wire.TaskID]bool{}
		shows := read()
		h.whole = shows.Page.Cursor == ""
		h.sub.Take(h.nowMs, h.ask, shows)
		var asked *wire.WatchSubscribe
		wants := func() {
			f, rows := h.sub.Wants(h.nowMs)
			if f == nil {
				return
			}
			asked, shows = f, read()
			for _, t := range h.tasks {
				if slices.Contains(rows, t.ID) {
					shows.Rows = append(shows.Rows, new(*t))
				}
			}
		}
		lazy := 1 + r.IntN(10)
		for range 300 {
			h.step()
			h.nowMs += r.Int64N(200)
			if r.IntN(2) == 0 {
				h.board.At = h.log.Positions()
			}
			switch {
			case asked == nil:
				wants()
			case r.IntN(3) == 0:
				h.show(asked, shows)
				asked = nil
			}
			if r.IntN(lazy) == 0 {
				h.read()
			}
		}
		h.settle(asked, shows)
		h.check()
	}
}

// show gives the subscriber what was read. A page that is lost begins anew.
func (h *shelf) show(f *wire.WatchSubscribe, shows *Shows) {
	if h.sub.list[0].lost && f.Filter == nil {
		h.moved, h.whole = map[wire.TaskID]bool{}, shows.Page.Cursor == ""
		// What left between the reading and now has moved.
		for shard, after := range shows.At {
			into := make([]events.Record, readRecords)
			n, missed := h.log.Read(shard, after, into)
			if missed > 0 {
				into, n = nil, 0
				for _, t := range shows.Page.Tasks {
					h.moved[t.ID] = true
				}
			}
			for _, r := range into[:n] {
				if r.To != wire.LocationPending {
					h.moved[r.Task] = true
				}
			}
		}
	}
	h.sub.Show(h.nowMs, f, shows)
}

// settle lets everything be read to the end.
func (h *shelf) settle(asked *wire.WatchSubscribe, shows *Shows) {
	if asked != nil {
		h.show(asked, shows)
	}
	for idle := 0; idle < 3; {
		h.board.At = h.log.Positions()
		h.nowMs += 1000
		idle++
		if h.read() {
			idle = 0
		}
		f, rows := h.sub.Wants(h.nowMs)
		if f == nil {
			continue
		}
		idle, shows = 0, &Shows{At: h.log.Positions()}
		shows.Page = h.page()
		for _, t := range h.tasks {
			if slices.Contains(rows, t.ID) {
				shows.Rows = append(shows.Rows, new(*t))
			}
		}
		h.show(f, shows)
	}
}

// A page lost its events while the client had not taken what was read of it: it must be read again.
func TestAPageThatLostEventsBeforeItsRowsWereTakenIsReadAgain(t *testing.T) {
	t.Parallel()
	log, nowMs, row := newFakeLog(1, 2), int64(1_000_000), &wire.Task{ID: wire.TaskID{1}, Command: queueName(0).Command, Location: wire.LocationPending}
	board := NewBoard(log.facts())
	board.Set(queueName(0), &wire.Figures{}, 0)
	sub, refusal := NewSubscriber(board, principal(queueName(0).Tenant, auth.ScopeView), nowMs)
	if refusal != nil {
		t.Fatal(refusal)
	}
	happens := func(times int) {
		for range times {
			log.add(0, events.Record{Task: row.ID, From: row.Location, To: row.Location, Cause: record.CauseMove})
		}
		board.At, nowMs = log.Positions(), nowMs+wire.MinWatchEveryMs
	}
	shows := func() *Shows {
		page := &wire.WatchSnapshot{}
		page.Tasks = []*wire.Task{new(*row)}
		return &Shows{At: log.Positions(), Page: page, Rows: page.Tasks}
	}
	ask := &wire.WatchSubscribe{ID: "p", Kind: wire.WatchPage, Command: row.Command, State: wire.StateReady, Limit: 5}
	sub.Take(nowMs, ask, shows())
	sub.Next(nowMs)
	happens(1)
	if f, _ := sub.Wants(nowMs); f != ask {
		t.Fatal("a page is not read again whose row has changed")
	}
	sub.Show(nowMs, ask, shows())
	happens(5)
	sub.Next(nowMs)
	if f, _ := sub.Wants(nowMs); f != ask {
		t.Error("a page that has lost events is not read again")
	}
}
