package watch

import (
	"maps"
	"slices"

	"codeq/wire"
)

// page is how far a subscription of kind page is: which rows the client has, and which of them
// have changed. Its rows never move: a task that comes is only counted, and not at all if the page
// has a filter.
type page struct {
	// location is "" for tasks in any state.
	location wire.Location
	filtered bool
	// rows are those that the client has. whole: they were the whole list.
	rows  map[wire.TaskID]bool
	whole bool
	// left are rows to be taken from the client, changed rows to be read again, read those that
	// were.
	left    []string
	changed []wire.TaskID
	read    []*wire.Task
	// above counts the tasks that the client does not have, tells says that it does not know.
	above int64
	tells bool
	// moved: the list is another one than when it was read last. lost: nobody knows what
	// happened since then. reading: it is being read, all: every row of it.
	moved, lost, reading, all bool
	readAtMs                  int64
}

// beginPage makes a page of what was read, and says it to the client in parts.
func (s *Subscriber) beginPage(nowMs int64, w *subscription, shows *Shows) {
	w.stream = stream{after: slices.Clone(shows.At), live: true}
	all := shows.Page
	w.page = page{
		location: wire.LocationOf(w.ask.State), filtered: w.ask.Filter != nil, rows: make(map[wire.TaskID]bool),
		whole: all.Cursor == "", readAtMs: nowMs,
	}
	for i, more := 0, true; more; {
		part := &wire.WatchSnapshot{ID: w.ask.ID, At: shows.At, AtMs: nowMs, Scanned: all.Scanned, Cursor: all.Cursor}
		if part.Tasks = []*wire.Task{}; !w.filtered {
			part.Above = new(int64)
		}
		for room := pagePartBytes; i < len(all.Tasks) && room > 0; i++ {
			row := s.rowOf(all.Tasks[i])
			w.rows[row.ID] = true
			part.Tasks = append(part.Tasks, row)
			room -= len(wire.AppendTask(nil, row, wire.PayloadAsString))
		}
		more = i < len(all.Tasks)
		part.More = more
		s.Say(part)
	}
}

// lists reports whether the page has tasks at a place; "" is that of a task that was removed.
func (p *page) lists(l wire.Location) bool {
	return l != "" && (p.location == "" || l.State() == p.location.State())
}

// pagePartBytes is about the length of a part of a page.
const pagePartBytes = 64 << 10

// rowOf is a task as it stands in a page: without payload, history and what its worker says of its
// progress, and with the first line of its error, if the client may see that.
func (s *Subscriber) rowOf(t *wire.Task) *wire.Task {
	row := *t
	row.Payload, row.History, row.Error, row.Progress = nil, nil, "", t.Progress.Outline()
	if s.rights.contents {
		row.Error = wire.Head(wire.FirstLine(t.Error), wire.MaxLineErrorBytes)
	}
	return &row
}

// follow reads the events up to now, and notes which rows they touch.
func (s *Subscriber) follow(w *subscription) {
	for shard, upTo := range s.board.At {
		for scan := scanRecords; w.after[shard] < upTo && scan > 0; {
			n, missed := s.board.Events.Read(shard, w.after[shard], s.records)
			if missed > 0 {
				w.lost, w.after[shard] = true, upTo
			}
			if n == 0 || missed > 0 {
				break
			}
			scan -= n
			for i := range s.records[:n] {
				r := &s.records[i]
				if r.Number > upTo {
					break
				}
				w.after[shard] = r.Number
				if (w.lists(r.From) || w.lists(r.To)) && w.filter.takes(s.board, r.Slot) {
					w.touch(r.Task, w.lists(r.To))
				}
			}
		}
	}
}

// touch notes an event of a task that came to the list or changed in it, or left it.
func (p *page) touch(id wire.TaskID, listed bool) {
	p.moved = p.moved || !p.filtered
	switch {
	case !p.rows[id]:
	case !listed:
		p.leave(id)
	case !slices.Contains(p.changed, id):
		p.changed, p.moved = append(p.changed, id), true
	}
}

func (p *page) leave(id wire.TaskID) {
	delete(p.rows, id)
	p.left = append(p.left, id.String())
}

// Wants is a subscription whose page must be read again, and the rows of it that must; nil if
// there is none. The caller answers by Show.
func (s *Subscriber) Wants(nowMs int64) (f *wire.WatchSubscribe, rows []wire.TaskID) {
	for _, w := range s.list {
		if w.ask.Kind != wire.WatchPage {
			continue
		}
		s.follow(w)
		if w.reading || !w.moved && !w.lost || nowMs < w.readAtMs+wire.MinWatchEveryMs {
			continue
		}
		if w.lost {
			w.read, w.tells = nil, false // it is not told, because all is read again
		}
		if len(w.read) > 0 || w.tells || s.Answers() > 0 {
			continue // the client has not taken what was read before
		}
		if w.all = w.filtered && w.lost; w.all {
			w.changed = slices.Collect(maps.Keys(w.rows))
		}
		rows = w.changed
		w.moved, w.reading, w.changed = false, true, nil
		return w.ask, rows
	}
	return nil, nil
}

// Show takes what was read for a subscription that Wants has returned.
func (s *Subscriber) Show(nowMs int64, f *wire.WatchSubscribe, shows *Shows) {
	i := slices.IndexFunc(s.list, func(w *subscription) bool { return w.ask == f })
	if i < 0 {
		return // it has ended
	}
	w := s.list[i]
	w.reading, w.readAtMs = false, nowMs
	switch {
	case shows.Err != nil:
		s.unsubscribe(f.ID)
		s.Say(&wire.WatchError{ID: f.ID, ErrorFrame: wire.ErrorFrame{Err: shows.Err}})
	case w.filtered:
		if w.all {
			w.regain(shows)
		}
		w.read = append(w.read, shows.Rows...)
	case w.lost:
		s.beginPage(nowMs, w, shows)
	default:
		w.read = append(w.read, shows.Rows...)
		above := w.newOnes(shows.Page.Tasks)
		w.tells, w.above = w.tells || above != w.above, above
	}
}

// regain goes on behind lost events, when every row was read again. It does not search again,
// which would cost a scan each time that events come faster than they are read.
func (w *subscription) regain(shows *Shows) {
	listed := make(map[wire.TaskID]bool)
	for _, t := range shows.Rows {
		listed[t.ID] = w.lists(t.Location)
	}
	for id := range w.rows {
		if !listed[id] {
			w.leave(id)
		}
	}
	slices.Sort(w.left)
	w.lost, w.after = false, slices.Clone(shows.At)
}

// newOnes counts the tasks of the list of now that the client does not have: those before the last
// one that it has, or all if it has none of them or had the whole list.
func (p *page) newOnes(list []*wire.Task) (above int64) {
	last := len(list)
	for i := range list {
		if !p.whole && p.rows[list[i].ID] {
			last = i
		}
	}
	for _, t := range list[:last] {
		if !p.rows[t.ID] {
			above++
		}
	}
	return above
}

// putPage puts the rows that changed or left into the message.
func (s *Subscriber) putPage(nowMs int64, w *subscription) {
	s.follow(w)
	if w.lost || s.room < fixedBytes+pagePartBytes {
		return
	}
	tick := wire.WatchTick{ID: w.ask.ID, AtMs: nowMs}
	for room := pagePartBytes; len(w.read) > 0 && room > 0; w.read = w.read[1:] {
		// A row that was read elsewhere has left, or its event comes.
		if t := w.read[0]; w.rows[t.ID] && w.lists(t.Location) {
			tick.Tasks = append(tick.Tasks, s.rowOf(t))
			room -= len(wire.AppendTask(nil, tick.Tasks[len(tick.Tasks)-1], wire.PayloadAsString))
		}
	}
	if tick.Left, w.left = w.left, nil; tick.Tasks == nil && tick.Left == nil && !w.tells {
		return
	}
	if w.tells = false; !w.filtered {
		tick.Above = new(w.above)
	}
	s.put(&tick)
}
