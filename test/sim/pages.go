package sim

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"codeq/internal/watch"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// listStates are the lists of the store by the words of a client.
var listStates = map[string]store.ListState{
	wire.StateReady: store.ListReady, wire.StateDelayed: store.ListDelayed, wire.StateInProgress: store.ListInProgress,
	wire.StateDead: store.ListDead, wire.StateDone: store.ListDone,
}

// listing is the beginning of a list as the model had it when the server read it.
type listing struct {
	// ids are the first tasks, more says that there were others.
	ids  []wire.TaskID
	more bool
	// tasks are copies of those, and of rows that were read with them.
	tasks map[wire.TaskID]task
	// numbers are the last events of each shard that the server had made then.
	numbers []uint64
	shownMs int64
}

// pageRead is a page that the server has read and not shown, because what it read is not durable.
type pageRead struct {
	ask     *wire.WatchSubscribe
	shows   *watch.Shows
	listing *listing
	batches []uint64
}

// pageView is what a client has of a page.
type pageView struct {
	rows  map[wire.TaskID]*pageRow
	order []wire.TaskID
	// place is that of its tasks, "" for tasks at any.
	place wire.Location
	whole bool
	above int64
	// followed are the events of each shard that were held against the rows.
	followed []uint64
}

// pageRow is a row that has the events of its shard up to a number, and how it stands after the
// later ones: changed is the last that touched it, gone says that one took it out of the list.
type pageRow struct {
	number, changed uint64
	gone            bool
	// mayLeave: an event after the page was read took it out of the list.
	mayLeave bool
}

// list is a list of tasks as the model has it: in the order of each shard. Of the first ones of
// several shards that of the highest priority comes first, or the one with the earlier time or
// id; ended tasks come in the opposite order.
func (w *world) list(q record.QueueKey, place wire.Location) (all []*task) {
	byPlace := func(a, b *task) int { return cmp.Compare(b.place, a.place) } // PENDING_LIST before LIMITED
	byID := func(a, b *task) int { return bytes.Compare(a.id[:], b.id[:]) }
	compare := byID
	switch place {
	case wire.LocationPending:
		compare = func(a, b *task) int { return cmp.Or(byPlace(a, b), cmp.Compare(b.prio, a.prio), byID(a, b)) }
	case wire.LocationDelayed:
		compare = func(a, b *task) int { return cmp.Or(cmp.Compare(a.dueMs, b.dueMs), byID(a, b)) }
	case wire.LocationDead, wire.LocationNone:
		compare = func(a, b *task) int {
			return cmp.Or(cmp.Compare(b.result.CompletedAtMs, a.result.CompletedAtMs), byID(b, a))
		}
	}
	shards := make([][]*task, w.shape.shards)
	for _, t := range w.model.all {
		if t.tenant == q.Tenant && t.command == q.Command && (t.place == place || place == wire.LocationPending && t.place == wire.LocationLimited) && !t.removed {
			shards[t.shard] = append(shards[t.shard], t)
		}
	}
	for _, tasks := range shards {
		if place != wire.LocationPending {
			slices.SortFunc(tasks, compare)
			continue
		}
		slices.SortFunc(tasks, func(a, b *task) int {
			key := 0
			if a.place == wire.LocationLimited {
				key = cmp.Compare(a.shares, b.shares)
			}
			return cmp.Or(byPlace(a, b), key, cmp.Compare(b.prio, a.prio), cmp.Compare(a.order, b.order))
		})
	}
	for {
		var first *task
		for _, tasks := range shards {
			if len(tasks) > 0 && (first == nil || compare(tasks[0], first) < 0) {
				first = tasks[0]
			}
		}
		if first == nil {
			return all
		}
		all = append(all, first)
		shards[first.shard] = shards[first.shard][1:]
	}
}

// readPage reads the beginning of a list as the server does, and some of its rows again.
func (v *viewer) readPage(ask *wire.WatchSubscribe, rows []wire.TaskID) *pageRead {
	w := v.audience.world
	s, q := w.server, record.QueueKey{Command: ask.Command, Tenant: v.tenant}
	r := &pageRead{
		ask: ask, batches: slices.Clone(s.applied), shows: &watch.Shows{At: s.events.log.Positions()},
		listing: &listing{tasks: make(map[wire.TaskID]task)},
	}
	for i := range w.model.shards {
		r.listing.numbers = append(r.listing.numbers, w.model.shards[i].events)
	}
	query := &store.ListQuery{Queue: q, State: listStates[ask.State], Limit: ask.Limit, MostRead: 5000}
	switch {
	case ask.Filter == nil:
		r.shows.Page = r.listing.page(w, query, w.list(q, wire.LocationOf(ask.State)))
	case rows == nil:
		query.State, query.Filter.Labels = store.ListLabelled, labels[0]
		r.shows.Page = r.listing.page(w, query, w.labelled(v.tenant, labels[0]))
	}
	// The rows come in an order that no map decides.
	slices.SortFunc(rows, func(a, b wire.TaskID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range rows {
		if t := w.model.tasks[id]; t != nil && !t.removed {
			r.shows.Rows = append(r.shows.Rows, w.read(t))
			r.listing.tasks[id] = *t
		}
	}
	return r
}

// labelled are the tasks of a tenant that have a label.
func (w *world) labelled(tenant string, label wire.Labels) (all []*task) {
	for _, t := range w.model.all {
		if t.tenant == tenant && !t.removed && labelsOf([]byte(t.payload)).Have(label) {
			all = append(all, t)
		}
	}
	return all
}

// page reads a list from the store, which must have the first of some tasks. What has a label is
// found in the order of the numbers of queues, which are the store's own.
func (l *listing) page(w *world, query *store.ListQuery, all []*task) *wire.WatchSnapshot {
	page, err := w.server.store.ListTasks(query)
	if err != nil || len(page.Tasks) != min(len(all), query.Limit) || (page.Places != nil) != (len(all) > query.Limit) {
		violate("a list has its tasks in order", "%+v: %d tasks of %d, %v", query, len(page.Tasks), len(all), err)
	}
	for i, seen := range page.Tasks {
		t := w.model.tasks[seen.ID]
		if !slices.Contains(all, t) || query.State != store.ListLabelled && t != all[i] {
			violate("a list has its tasks in order", "%+v: task %d is %v, want %v", query, i, seen.ID, all[i].id)
		}
		l.ids = append(l.ids, t.id)
		l.tasks[t.id] = *t
	}
	shows := &wire.WatchSnapshot{}
	if shows.Tasks, l.more = page.Tasks, page.Places != nil; l.more {
		shows.Cursor = "more"
	}
	return shows
}

// subscribePage asks for a page, once the client has read all there is.
func (v *viewer) subscribePage() {
	c := v.audience.chance
	ask := &wire.WatchSubscribe{
		ID: pick(c, []string{"p", "p", "o"}), Kind: wire.WatchPage, Command: pick(c, commands), Limit: pick(c, []int{1, 2, 3, 10, 50}),
		State: pick(c, []string{wire.StateReady, wire.StateReady, wire.StateDelayed, wire.StateInProgress, wire.StateDead, wire.StateDone}),
	}
	if c.oneIn(4) {
		ask.Command, ask.State, ask.Filter = "", "", []byte(`{"label":["`+labels[0]+`"]}`)
	}
	if v.opens == nil && v.message == nil && len(v.pending) == 0 {
		v.opens = v.readPage(ask, nil)
	}
}

// isDurable says that everything a page was read from is.
func (v *viewer) isDurable(r *pageRead) bool {
	return !ahead(r.batches, v.audience.world.server.durable)
}

// showsPages goes on with pages that were read.
func (v *viewer) showsPages() {
	nowMs := v.audience.world.nowMs
	if r := v.again; r != nil && v.isDurable(r) {
		v.again = nil
		r.listing.shownMs = nowMs
		if v.asked[r.ask.ID] == r.ask {
			v.listings[r.ask.ID] = r.listing
		}
		v.sub.Show(nowMs, r.ask, r.shows)
	}
	if r := v.opens; r != nil && v.isDurable(r) && v.message == nil && len(v.pending) == 0 {
		v.opens = nil
		r.listing.shownMs = nowMs
		v.listings[r.ask.ID] = r.listing
		v.say(r.ask, r.shows)
	}
}

// rereads lets the server read a page again that has changed. If none has, what the client has
// must be true.
func (v *viewer) rereads() {
	if v.sub == nil || v.again != nil {
		return
	}
	if ask, rows := v.sub.Wants(v.audience.world.nowMs); ask != nil {
		v.again = v.readPage(ask, append([]wire.TaskID{}, rows...))
		return
	}
	if v.message != nil || len(v.pending) > 0 {
		return
	}
	for _, w := range v.views {
		if w.ask.Kind == wire.WatchPage && v.audience.world.nowMs >= v.listings[w.ask.ID].shownMs+wire.MinWatchEveryMs {
			v.pageIsTrue(w, v.listings[w.ask.ID])
		}
	}
}

// follow holds the events up to a position against the rows.
func (v *viewer) follow(w *view, at []uint64) {
	for shard, upTo := range at {
		for ; w.page.followed[shard] < upTo; w.page.followed[shard]++ {
			e := &v.audience.past[shard][w.page.followed[shard]]
			row := w.page.rows[e.TaskID]
			if row == nil {
				continue
			}
			leaves := !w.page.lists(e.To)
			if row.mayLeave = row.mayLeave || leaves; e.Number > row.number {
				row.changed, row.gone = e.Number, row.gone || leaves
			}
		}
	}
}

// lists reports whether tasks at a place are in the page.
func (p *pageView) lists(place wire.Location) bool {
	return place != "" && (p.place == "" || p.place.State() == place.State())
}

// beginsPage takes a part of a snapshot.
func (v *viewer) beginsPage(w *view, f *wire.WatchSnapshot, m *message) {
	l := m.pages[f.ID]
	if w.whole || w.page == nil {
		w.page, w.whole = &pageView{
			place: wire.LocationOf(w.ask.State), rows: make(map[wire.TaskID]*pageRow), whole: !l.more, followed: slices.Clone(f.At),
		}, false
	}
	w.takeAbove(f.Above)
	if w.page.above != 0 || (f.Cursor != "") != l.more || f.AtMs != l.shownMs {
		violate("a page says when it was read", "%s got %+v of a page that was shown at %d", v.name, f, l.shownMs)
	}
	for _, row := range f.Tasks {
		w.page.order = append(w.page.order, row.ID)
		w.page.rows[row.ID] = v.takeRow(w, l, row)
	}
	if w.whole = !f.More; w.whole && !slices.Equal(w.page.order, l.ids) {
		violate("a page is the beginning of its list", "%s asks for %+v and has %v, want %v", v.name, w.ask, w.page.order, l.ids)
	}
}

// ticksPage takes rows that changed or left.
func (v *viewer) ticksPage(w *view, f *wire.WatchTick, m *message) {
	if !w.whole {
		violate("a snapshot comes before its ticks", "%s has a tick of %s", v.name, f.ID)
	}
	v.follow(w, m.shown.at)
	for _, text := range f.Left {
		id, isID := wire.ParseTaskID(text)
		if row := w.page.rows[id]; !isID || row == nil || !row.mayLeave {
			violate("what leaves a page is said", "%s is told that %s has left: %+v", v.name, text, row)
		}
		delete(w.page.rows, id)
	}
	for _, row := range f.Tasks {
		had := w.page.rows[row.ID]
		if had == nil {
			violate("rows of a page never move", "%s gets %v, which is none of %v", v.name, row.ID, w.page.order)
		}
		next := v.takeRow(w, m.pages[f.ID], row)
		if next.mayLeave = had.mayLeave; had.changed > next.number {
			next.changed, next.gone = had.changed, had.gone
		}
		w.page.rows[row.ID] = next
	}
	w.takeAbove(f.Above)
}

// takeAbove takes how many tasks are new, which only a page without a filter says.
func (w *view) takeAbove(above *int64) {
	if (above == nil) != (w.ask.Filter != nil) {
		violate("a page counts what is new", "%+v: %v", w.ask, above)
	}
	if above != nil {
		w.page.above = *above
	}
}

// takeRow holds a row against the task as it was when the row was read.
func (v *viewer) takeRow(w *view, l *listing, row *wire.Task) *pageRow {
	t, read := l.tasks[row.ID]
	if !read || !w.page.lists(row.Location) {
		violate("a page has the rows of its list", "%s asks for %+v and got %+v", v.name, w.ask, row)
	}
	told := ""
	if v.rights.admin() {
		told, _, _ = strings.Cut(t.reason, "\n")
	}
	if row.Payload != nil || row.History != nil || row.Error != told {
		violate("a task is shown as the rights say", "%s of %s got the row %+v, its error is %q", v.name, v.rights.scope, row, t.reason)
	}
	seen := *row
	seen.Payload, seen.Error = []byte(t.payload), t.reason
	if diff := t.differs(&seen); diff != "" || row.Labels != labelsOf(seen.Payload) {
		violate("a page has the rows of its list", "%s: %s, labels %q", v.name, diff, row.Labels)
	}
	return &pageRow{number: l.numbers[t.shard]}
}

// pageIsTrue holds a page against the events and against the list, when the server has nothing to
// read again and nothing to say.
func (v *viewer) pageIsTrue(w *view, l *listing) {
	v.follow(w, v.audience.shown.at)
	for _, id := range w.page.order {
		row := w.page.rows[id]
		switch {
		case row == nil:
		case row.gone:
			violate("what leaves a page is said", "%s has %v in %+v after event %d", v.name, id, w.ask, row.changed)
		case row.changed > row.number && !v.audience.world.model.tasks[id].removed: // else the event of its removal is on its way
			violate("what changes in a page is said", "%s has %v in %+v as of event %d, and not event %d", v.name, id, w.ask, row.number, row.changed)
		}
	}
	if above := w.page.newOnes(l.ids); w.ask.Filter == nil && w.page.above != above {
		violate("a page counts what is new", "%s is told that %d are new in %+v, there are %d", v.name, w.page.above, w.ask, above)
	}
}

// newOnes counts the tasks that a new page would have before the last row of this one, or anywhere
// if this one had the whole list or has no row in the new one.
func (p *pageView) newOnes(list []wire.TaskID) (n int64) {
	end := len(list)
	if !p.whole {
		for i, id := range list {
			if p.rows[id] != nil {
				end = i
			}
		}
	}
	for _, id := range list[:end] {
		if p.rows[id] == nil {
			n++
		}
	}
	return n
}
