package watch

import (
	"codeq/internal/events"
	"codeq/internal/needs"
	"codeq/record"
	"codeq/wire"
)

const (
	// secondMs is the time that figures with Per are of.
	secondMs = 1000
	// windowMs is how long the times are that a percentile is of, at least, and half of what
	// they are at most.
	windowMs = 30_000
	// tableTimes is how many times as long as it takes the pause between two reads of the
	// store is, at least.
	tableTimes = 20
	// fewRuns is how many deliveries must have ended to say how long they take.
	fewRuns = 20
)

// Source brings a board up to date from the log of events. The numbers of tasks are those of the
// log at the positions of the board. What no event tells, the oldest ready task and the pause of a
// queue, is read from the store once a second. One goroutine at a time may call it.
type Source struct {
	log *events.Log
	// tables reads the figures of all queues from the store.
	tables func() ([]wire.QueueFigures, error)
	nowMs  func() int64

	version uint64
	queues  []queue // by slot
	slots   map[record.QueueKey]uint32

	secondAt, windowAt, tablesAt int64
}

// queue is what the source knows of the queue of a slot.
type queue struct {
	name    wire.SlotName
	figures wire.Figures
	// counts are those of now, second those of the last whole second. half and window are those
	// of up to windowMs ago and of the windowMs before. They are nil for a queue without events.
	counts, second *events.Counts
	half, window   past
	// times counts the changes of what percentiles are of.
	times uint64
}

// past is what a queue was at a time.
type past struct {
	*events.Counts
	atMs, ready int64
}

// NewSource makes a source for one board.
func NewSource(log *events.Log, tables func() ([]wire.QueueFigures, error), nowMs func() int64) *Source {
	return &Source{log: log, tables: tables, nowMs: nowMs, slots: make(map[record.QueueKey]uint32)}
}

// Refresh brings the board up to date. The error is that of the store; the rest of the board is
// up to date then.
func (s *Source) Refresh(b *Board, nowMs int64) (err error) {
	s.version, b.At = s.log.Figures(s.version, s.take)
	if took := nowMs - s.secondAt; took >= secondMs {
		s.second(took, nowMs)
		s.secondAt = nowMs
	}
	if nowMs >= s.tablesAt {
		err = s.readTables()
		s.tablesAt = max(nowMs+secondMs, s.nowMs()+tableTimes*(s.nowMs()-nowMs))
	}
	for slot := range s.queues {
		q := &s.queues[slot]
		b.Set(q.name, &q.figures, q.times)
	}
	return err
}

// Beside is what is known of the queue of a slot beside its figures.
func (s *Source) Beside(slot uint32, nowMs int64) needs.Beside {
	q := &s.queues[slot]
	if q.counts == nil {
		return needs.Beside{}
	}
	all, runP99Ms := uint64(0), int64(0)
	for _, n := range q.counts.Run.Buckets {
		all += n
	}
	if all >= fewRuns {
		_, runP99Ms = events.Percentiles(&q.counts.Run.Buckets)
	}
	return needs.Beside{
		RunP99Ms: runP99Ms,
		SpanMs:   nowMs - q.window.atMs, ReadyThen: q.window.ready,
		Started:    int64(q.counts.Moves[record.CauseGrant] - q.window.Moves[record.CauseGrant]),
		Unreadable: int64(q.counts.Moves[record.CauseUnreadable]), Suspect: int64(q.counts.Moves[record.CauseSuspect]),
	}
}

// Times adds the times of a queue that came in the last half a minute to a minute, up to the end
// of the last second: those that its percentiles are of.
func (s *Source) Times(slot uint32, wait, run *[events.Buckets]uint64) {
	if q := &s.queues[slot]; q.counts != nil {
		addCame(wait, &q.second.Wait, &q.window.Wait)
		addCame(run, &q.second.Run, &q.window.Run)
	}
}

// take takes the figures of a queue from the log.
func (s *Source) take(name wire.SlotName, f *events.Figures) {
	for int(name.Slot) >= len(s.queues) {
		s.queues = append(s.queues, queue{name: wire.SlotName{Slot: uint32(len(s.queues))}})
	}
	q := &s.queues[name.Slot]
	if q.name != name {
		delete(s.slots, record.QueueKey{Command: q.name.Command, Tenant: q.name.Tenant})
		*q = queue{name: name}
	}
	if name.Command == "" {
		return
	}
	s.slots[record.QueueKey{Command: name.Command, Tenant: name.Tenant}] = name.Slot
	copy(q.figures[:wire.FigureInPer], f.Row[:wire.FigureInPer])
	q.figures[wire.FigureLimited] = f.Row[wire.FigureLimited]
	switch {
	case f.Moves == [record.Causes]uint64{}:
		if q.counts != nil {
			q.times++
		}
		q.counts, q.second, q.half, q.window = nil, nil, past{}, past{}
	case q.counts == nil:
		// Events before the first look are of no second.
		q.counts, q.second = new(f.Counts), new(f.Counts)
		q.begin(s.secondAt)
	default:
		*q.counts = f.Counts
	}
}

// begin begins the time that percentiles and trends are of.
func (q *queue) begin(nowMs int64) {
	q.half = past{new(*q.counts), nowMs, q.figures[wire.FigureReady]}
	q.window = past{new(*q.counts), nowMs, q.figures[wire.FigureReady]}
}

// second sets the figures of the last second, and the percentiles.
func (s *Source) second(tookMs, nowMs int64) {
	turns := nowMs-s.windowAt >= windowMs
	if turns {
		s.windowAt = nowMs
	}
	for i := range s.queues {
		q := &s.queues[i]
		clear(q.figures[wire.FigureInPer:wire.FigureOldestReadyAt])
		clear(q.figures[wire.FigureWaitP50:wire.FigurePaused])
		if q.counts == nil {
			continue
		}
		second, window := *q.second, *q.window.Counts
		if tookMs < 2*secondMs {
			q.rates(tookMs)
		} else {
			q.begin(nowMs) // there was no client, and so no last second
		}
		q.figures[wire.FigureWaitP50], q.figures[wire.FigureWaitP99] = percentiles(&q.counts.Wait, &q.window.Wait)
		q.figures[wire.FigureRunP50], q.figures[wire.FigureRunP99] = percentiles(&q.counts.Run, &q.window.Run)
		*q.second = *q.counts
		if turns {
			q.window, q.half = q.half, q.window
			*q.half.Counts, q.half.atMs, q.half.ready = *q.counts, nowMs, q.figures[wire.FigureReady]
		}
		if second.Wait != q.second.Wait || second.Run != q.second.Run || window.Wait != q.window.Wait || window.Run != q.window.Run {
			q.times++
		}
	}
}

// rates sets the figures with Per from the counts of now and of the last second.
func (q *queue) rates(tookMs int64) {
	now, before := q.counts, q.second
	for figure, counts := range [...][2]uint64{
		wire.FigureInPer:        {now.Moves[record.CauseEnqueue], before.Moves[record.CauseEnqueue]},
		wire.FigureStartedPer:   {now.Moves[record.CauseGrant], before.Moves[record.CauseGrant]},
		wire.FigureCompletedPer: {now.Completed, before.Completed},
		wire.FigureFailedPer:    {now.Buried, before.Buried},
		wire.FigureRetriedPer:   {now.Retried, before.Retried},
		wire.FigureExpiredPer:   {now.Moves[record.CauseTaskExpired], before.Moves[record.CauseTaskExpired]},
	} {
		if figure >= wire.FigureInPer && counts[0] > counts[1] {
			q.figures[figure] = (int64(counts[0]-counts[1])*secondMs + tookMs/2) / tookMs
		}
	}
}

// percentiles are those of the times that came to a histogram.
func percentiles(now, before *events.Histogram) (p50, p99 int64) {
	var came [events.Buckets]uint64
	addCame(&came, now, before)
	return events.Percentiles(&came)
}

// addCame adds the times that came to a histogram.
func addCame(to *[events.Buckets]uint64, now, before *events.Histogram) {
	for i, n := range now.Buckets {
		to[i] += n - min(n, before.Buckets[i])
	}
}

// readTables reads what no event tells.
func (s *Source) readTables() error {
	all, err := s.tables()
	if err != nil {
		return err
	}
	for i := range s.queues {
		s.queues[i].figures[wire.FigureOldestReadyAt], s.queues[i].figures[wire.FigurePaused] = 0, 0
	}
	for i := range all {
		slot, known := s.slots[record.QueueKey{Command: all[i].Command, Tenant: all[i].TenantID}]
		if !known {
			continue
		}
		f := &s.queues[slot].figures
		f[wire.FigureOldestReadyAt] = all[i].OldestReadyAtMs
		if all[i].Paused {
			f[wire.FigurePaused] = 1
		}
	}
	return nil
}
