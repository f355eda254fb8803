package watch

import (
	"slices"

	"codeq/internal/events"
	"codeq/wire"
)

const (
	// readRecords is how many events one read of the ring copies; scanRecords bounds what one
	// call of Next looks at.
	readRecords = 1000
	scanRecords = 50_000
)

// stream is how far a subscription of kind events or task is.
type stream struct {
	// after has, for each shard, the number of the last event that the subscription is past.
	after []uint64
	// task is the task of kind task; the others have the zero one.
	task wire.TaskID
	// reported is the number of the last report that was sent of the task, outputLost why some of its
	// output may be gone, which was not said yet.
	reported   uint64
	outputLost string
	// live: the subscription has read all there was at its beginning.
	live bool
	// tokens is how many events may be sent now, in thousandths, at most those of a second.
	// While fewer than half are left, only every stride-th event that matches is sent. matched
	// counts those since countedAtMs.
	tokens      int64
	most        int64
	refilledAt  int64
	stride      int64
	matched     int64
	countedAtMs int64
}

// beginEvents finds where a subscription begins: at the present, if it does not say where or
// names events that this database never had.
func (s *Subscriber) beginEvents(nowMs int64, w *subscription) {
	most := 1000 * int64(w.ask.MaxPerSecond)
	w.stream = stream{after: slices.Clone(w.ask.After), stride: 1, tokens: most, most: most, refilledAt: nowMs, countedAtMs: nowMs}
	now := s.board.Events.Positions()
	foreign := w.ask.CreationID != "" && w.ask.CreationID != s.board.CreationID
	for shard, after := range w.after {
		foreign = foreign || after > now[shard]
	}
	if w.after == nil || foreign {
		w.after, w.live = now, true
		s.Say(&wire.WatchSnapshot{ID: w.ask.ID, At: slices.Clone(now)})
	}
}

// beginTask shows a task, and its events from then on; to a client that resumes only the events
// after those that it has, if the ring still has them.
func (s *Subscriber) beginTask(w *subscription, shows *Shows) {
	w.stream = stream{after: slices.Clone(shows.At), task: w.ask.TaskID, live: true, reported: w.ask.Reported}
	if shows.Task.Printed && s.board.Reports != nil {
		w.outputLost = s.board.Reports.Lost(shows.Task.CreatedAtMs, w.reported)
	}
	shard := s.board.ShardOf(w.task)
	if w.ask.CreationID == s.board.CreationID && len(w.ask.After) == len(shows.At) {
		if after := w.ask.After[shard]; after <= shows.At[shard] && after+1 >= s.board.Events.Oldest()[shard] {
			w.after[shard] = after
			return
		}
	}
	s.Say(&wire.WatchSnapshot{ID: w.ask.ID, At: shows.At, WatchState: wire.WatchState{Task: s.taskFor(shows.Task)}})
}

// refill adds the tokens of the time that has passed, and once a second sets the stride by
// what matched in the last one.
func (t *stream) refill(nowMs int64) {
	t.tokens = min(t.most, t.tokens+(nowMs-t.refilledAt)*t.most/1000)
	t.refilledAt = nowMs
	if took := nowMs - t.countedAtMs; took >= 1000 {
		allowed := max(1, t.most*took/1_000_000)
		t.stride = max(1, (t.matched+allowed-1)/allowed)
		t.matched, t.countedAtMs = 0, nowMs
	}
}

// putEvents puts the events of a subscription into the message, as far as there is room.
func (s *Subscriber) putEvents(nowMs int64, w *subscription) {
	now := s.board.At
	if !w.task.IsZero() {
		shard := s.board.ShardOf(w.task)
		if s.putReports(w, shard) {
			s.putShard(w, shard, now[shard], scanRecords)
		}
		return
	}
	w.refill(nowMs)
	behind := false
	for shard := range w.after {
		s.putShard(w, shard, now[shard], scanRecords/len(w.after))
		behind = behind || w.after[shard] < now[shard]
	}
	w.live = w.live || !behind
}

// putReports puts what the workers of a task have reported into the message, and reports whether
// that was all: an end comes behind the last output.
func (s *Subscriber) putReports(w *subscription, shard int) bool {
	if s.board.Reports == nil {
		return true
	}
	reports, lost := s.board.Reports.Read(w.task, w.reported)
	if lost {
		w.outputLost = wire.GapEvicted
	}
	if w.outputLost != "" && s.rights.contents {
		s.put(&wire.WatchGap{ID: w.ask.ID, Shard: shard, Reason: w.outputLost, Of: wire.GapOutput})
	}
	w.outputLost = ""
	for i := range reports {
		r := &reports[i]
		if s.room <= fixedBytes+reportBytes {
			return false
		}
		w.reported = r.Number
		if f := r.Frame(w.ask.ID, s.rights.contents); f != nil {
			s.put(f)
		}
	}
	return true
}

// putShard puts events of one shard up to a number into the message. It looks at no more than
// scan events.
func (s *Subscriber) putShard(w *subscription, shard int, upTo uint64, scan int) {
	var skipped wire.WatchGap
	for w.after[shard] < upTo && scan > 0 && s.room > fixedBytes+eventBytes {
		n, missed := s.board.Events.Read(shard, w.after[shard], s.records)
		if missed > 0 {
			s.putGap(w, shard, missed)
		}
		if n == 0 {
			break
		}
		scan -= n
		for i := range s.records[:n] {
			r := &s.records[i]
			if r.Number > upTo || s.room <= fixedBytes+eventBytes {
				break
			}
			w.after[shard] = r.Number
			if !s.wants(w, r) {
				continue
			}
			if w.mayPut() {
				s.put(s.eventOf(w, shard, r))
				continue
			}
			if skipped.Missed++; skipped.From == 0 {
				skipped.From = r.Number
			}
			skipped.To = r.Number
		}
	}
	if skipped.Missed > 0 {
		skipped.ID, skipped.Shard, skipped.Reason = w.ask.ID, shard, wire.GapSampled
		s.put(&skipped)
	}
}

// putGap says that the ring does not have the next events any more.
func (s *Subscriber) putGap(w *subscription, shard int, missed uint64) {
	gap := &wire.WatchGap{
		ID: w.ask.ID, Shard: shard, From: w.after[shard] + 1, To: w.after[shard] + missed, Missed: missed, Reason: wire.GapEvicted,
	}
	if w.live {
		gap.Reason = wire.GapSlow
	}
	w.after[shard] += missed
	s.put(gap)
}

func (s *Subscriber) wants(w *subscription, r *events.Record) bool {
	if !w.task.IsZero() {
		return r.Task == w.task
	}
	return w.filter.takesCause(r.Cause.String()) && w.filter.takes(s.board, r.Slot)
}

// mayPut counts one event that matches, and reports whether it is sent.
func (t *stream) mayPut() bool {
	if !t.task.IsZero() {
		return true
	}
	t.matched++
	if t.tokens < 1000 || t.tokens <= t.most/2 && t.matched%t.stride != 0 {
		return false
	}
	t.tokens -= 1000
	return true
}

func (s *Subscriber) eventOf(w *subscription, shard int, r *events.Record) *wire.WatchEvent {
	e := &wire.WatchEvent{
		ID: w.ask.ID, Shard: shard, Number: r.Number, AtMs: r.AtMs, Task: r.Task, From: r.From, To: r.To, Status: r.Status,
		Cause: r.Cause.String(), Delivery: r.Delivery, Worker: r.Worker, SpentMs: r.SpentMs, Attempts: r.Attempts,
	}
	if name := s.board.nameOf(r.Slot); name != nil {
		e.Command = name.Command
		if name.Tenant != s.rights.tenant {
			e.Tenant = name.Tenant
		}
	}
	return e
}
