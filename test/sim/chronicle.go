package sim

import (
	"maps"
	"math/bits"
	"slices"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// forgetForMs is how long a queue is without an event before its counts go, and all of it if
// nothing is left of it.
const forgetForMs = 3600_000

// steps are the steps of the history, with how far back each is asked for.
var steps = [...]struct{ ms, rangeMs int64 }{{1000, 5 * 60_000}, {10_000, 3600_000}, {60_000, 24 * 3600_000}}

// fewPoints are as many as the memory of each step has room for.
const fewPoints = 300

// chronicle is what the history of one life must be.
type chronicle struct {
	series   map[record.QueueKey]*series
	tickedMs int64
	// forgetsMs is when quiet queues are looked for.
	forgetsMs int64
	// made are how many points there are of each step.
	made [len(steps)]int
}

// series is the history of a queue.
type series struct {
	sinceMs int64
	// came is what has happened in each step that goes on.
	came   [len(steps)]happened
	points [len(steps)][]wire.WatchPoint
	// numbers are the numbers of the points among those of all queues.
	numbers [len(steps)][]int
}

// happened are the counts of a step, and the times that tasks waited and ran.
type happened struct {
	events    int
	per       wire.Figures
	wait, run []int64
}

func newChronicle() *chronicle { return &chronicle{series: make(map[record.QueueKey]*series)} }

// of are the points of a queue.
func (c *chronicle) of(q record.QueueKey, stepMs int64) []wire.WatchPoint {
	i := slices.IndexFunc(steps[:], func(s struct{ ms, rangeMs int64 }) bool { return s.ms == stepMs })
	if c.series[q] == nil || i < 0 {
		return nil
	}
	return c.series[q].points[i]
}

// totalCommand stands for all queues of a tenant, or with none of all tenants.
const totalCommand = "**"

// add counts an event into the steps that go on.
func (c *chronicle) add(e *shard.Event) {
	c.addTo(record.QueueKey{Command: e.Command, Tenant: e.Tenant}, e)
	c.addTo(record.QueueKey{Command: totalCommand, Tenant: e.Tenant}, e)
	c.addTo(record.QueueKey{Command: totalCommand}, e)
}

func (c *chronicle) addTo(q record.QueueKey, e *shard.Event) {
	s := c.series[q]
	if s == nil {
		s = &series{sinceMs: -1}
		c.series[q] = s
	}
	for i := range s.came {
		s.came[i].add(e)
	}
}

func (h *happened) add(e *shard.Event) {
	h.events++
	for _, figure := range figuresOf(e) {
		h.per[figure]++
	}
	if e.Cause == record.CauseGrant {
		h.wait = append(h.wait, e.SpentMs)
	}
	if e.From == wire.LocationInProgress {
		h.run = append(h.run, e.SpentMs)
	}
}

// figuresOf are the figures of a second that count an event.
func figuresOf(e *shard.Event) (figures []int) {
	switch e.Cause {
	case record.CauseEnqueue:
		figures = append(figures, wire.FigureInPer)
	case record.CauseGrant:
		figures = append(figures, wire.FigureStartedPer)
	case record.CauseTaskExpired:
		figures = append(figures, wire.FigureExpiredPer)
	}
	back := e.Cause == record.CauseRelease || e.Cause == record.CauseUndelivered
	switch {
	case e.To == wire.LocationNone && e.Status == wire.StatusCompleted:
		figures = append(figures, wire.FigureCompletedPer)
	case e.To == wire.LocationDead:
		figures = append(figures, wire.FigureFailedPer)
	case e.From == wire.LocationInProgress && !e.Status.Terminal() && e.To != "" && !back:
		figures = append(figures, wire.FigureRetriedPer)
	}
	return figures
}

// tick ends the steps that are over.
func (c *chronicle) tick(nowMs int64, rows map[record.QueueKey]*events.Figures) {
	for i, step := range steps {
		if nowMs/step.ms == c.tickedMs/step.ms {
			continue
		}
		for q, s := range c.series {
			if s.sinceMs < 0 {
				s.sinceMs = nowMs
			}
			h := &s.came[i]
			if h.events == 0 {
				continue
			}
			p := wire.WatchPoint{AtMs: nowMs / 1000 * 1000, Figures: h.per}
			row := rowOf(q, rows)
			copy(p.Figures[:wire.FigureInPer], row[:])
			p.Figures[wire.FigureLimited] = row[wire.FigureLimited]
			p.Figures[wire.FigureWaitP50], p.Figures[wire.FigureWaitP99] = percentile(h.wait, 50), percentile(h.wait, 99)
			p.Figures[wire.FigureRunP50], p.Figures[wire.FigureRunP99] = percentile(h.run, 50), percentile(h.run, 99)
			s.points[i] = append(s.points[i], p)
			c.made[i]++
			s.numbers[i] = append(s.numbers[i], c.made[i])
			s.came[i] = happened{}
		}
	}
	c.tickedMs = nowMs
}

// rowOf are the figures of a queue, or of all queues that a key stands for.
func rowOf(q record.QueueKey, rows map[record.QueueKey]*events.Figures) (row wire.Figures) {
	for other, f := range rows {
		if other == q || q.Command == totalCommand && (q.Tenant == "" || q.Tenant == other.Tenant) {
			for i, n := range f.Row {
				row[i] += n
			}
		}
	}
	return row
}

// percentile is the smallest time that so many of a hundred are not above, rounded up to a
// power of two less one; 0 for none.
func percentile(times []int64, percent int) int64 {
	if len(times) == 0 {
		return 0
	}
	times = slices.Sorted(slices.Values(times))
	at := times[(len(times)*percent+99)/100-1]
	return int64(1)<<min(bits.Len64(uint64(at)), events.Buckets-1) - 1
}

// tickSome is the ticker of the log: once a second while the process runs.
func (w *world) tickSome() {
	v := w.server.events
	if w.nowMs/1000 == v.history.tickedMs/1000 {
		return
	}
	v.log.Tick(w.nowMs)
	v.history.tick(w.nowMs, v.queues)
	v.forget(w.nowMs)
	v.checkPoints()
}

// checkPoints holds the history of each queue against what has happened.
func (v *watcher) checkPoints() {
	slots := maps.Clone(v.slots)
	for q := range v.history.series {
		if q.Command == totalCommand {
			slots[v.log.TotalOf(q.Tenant)] = q
		}
	}
	for slot, q := range slots {
		s := v.history.series[q]
		for i, step := range steps {
			stepMs, got := v.log.Points(slot, step.rangeMs)
			if stepMs != step.ms {
				violate("points are what happened", "steps of %d ms for %d ms", stepMs, step.rangeMs)
			}
			var want []wire.WatchPoint
			if s != nil {
				first := 0
				for first < len(s.points[i]) && s.points[i][first].AtMs < max(s.sinceMs, v.history.tickedMs-step.rangeMs)-999 {
					first++
				}
				// The oldest ones go when many came after them.
				for first < len(s.points[i])-len(got) && v.history.made[i]-s.numbers[i][first] >= fewPoints {
					first++
				}
				want = s.points[i][first:]
			}
			if !slices.Equal(got, want) {
				violate("points are what happened", "queue %v, steps of %d ms: got %+v, want %+v", q, step.ms, got, want)
			}
		}
	}
}

// points holds the history of a queue against what was counted.
func (v *viewer) points(f *wire.WatchPoints, m *message) {
	w, name := v.view(f.ID, wire.WatchQueues), v.names[f.Slot]
	if f.Slot == wire.TotalSlot && len(w.ask.Commands) == 0 {
		if name = (wire.SlotName{Command: totalCommand, Tenant: v.rights.tenant}); v.rights.scope == auth.ScopeAdminAll {
			name.Tenant = ""
		}
	}
	if name.Command != totalCommand && (!v.rights.sees(name.Tenant) || !matches(w.ask.Commands, name.Command)) {
		violate("no event of another tenant", "%s has points of %+v", v.name, name)
	}
	past := m.history.of(record.QueueKey{Command: name.Command, Tenant: name.Tenant}, f.StepMs)
	for _, p := range f.Points {
		if !slices.Contains(past, p) {
			violate("points are what happened", "%s has %+v of %+v in steps of %d ms", v.name, p, name, f.StepMs)
		}
	}
}
