package needs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"codeq/wire"
)

const (
	// waitsForMs is how long a task must be ready until its queue needs a worker.
	waitsForMs = 10_000
	// trendForMs is the least time that a trend is of.
	trendForMs = 20_000
	// aheadMs is how far ahead the end of a trend is told.
	aheadMs = 24 * 3600_000
	hourS   = 3600
	// A delivery is slow after slowAfterMs, and slowTimes as long as 99 of 100 take.
	slowAfterMs = 60_000
	slowTimes   = 10
	maxNeeds    = 50
)

// Beside is what is known of a queue beside its figures.
type Beside struct {
	// SpanMs is the time since which Started tasks were given to workers, and ReadyThen were
	// ready at its beginning. 0 is not known.
	SpanMs, ReadyThen, Started int64
	// Unreadable and Suspect count tasks that were set aside.
	Unreadable, Suspect int64
	// Dead is what is known of the dead letters, Slow of the tasks in progress.
	Dead DeadLetters
	Slow Slow
	// RunP99Ms is the time that 99 of 100 deliveries took at most, 0 if few have ended.
	RunP99Ms int64
}

// Slow is what a look at the tasks in progress of a queue has found: how many have been with their
// worker since LongBefore or longer, and since when the first of them has.
type Slow struct {
	Count, SinceMs int64
}

// DeadLetters is what a look at the dead letters of a queue has found.
type DeadLetters struct {
	// SinceMs is when the oldest one ended, 0 if that is not known.
	SinceMs int64
	// Same is how many of the newest Of dead letters have the same Reason.
	Reason   string
	Of, Same int
}

// Condition is what the needs of one queue follow from.
type Condition struct {
	Name    *wire.SlotName
	Figures *wire.Figures
	Beside  *Beside
	// Takers is how many sessions take its tasks. Target is why its target gets none, empty if it
	// has no target or one that is well.
	Takers int
	Target string
}

// Need is a need with the tenant of its queue. Told is the part of its sentence that has text of
// errors, for those who may see it.
type Need struct {
	wire.Need
	Told string
}

// rules find what a queue needs. Each gives a need, or false.
var rules = []func(c *Condition, nowMs int64) (Need, bool){noWorker, growing, slow, paused, deadLetters, setAside}

// Of is what one queue needs.
func Of(c *Condition, nowMs int64) (needs []Need) {
	for _, rule := range rules {
		n, ok := rule(c, nowMs)
		if !ok {
			continue
		}
		n.Tenant, n.Command = c.Name.Tenant, c.Name.Command
		n.Sentence = c.Name.Command + " " + n.Sentence
		needs = append(needs, n)
	}
	return needs
}

// Waits reports whether a queue has tasks that have been ready for some time.
func (c *Condition) Waits(nowMs int64) bool {
	oldest := c.Figures[wire.FigureOldestReadyAt]
	return c.Figures[wire.FigureReady] > 0 && oldest != 0 && nowMs >= oldest+waitsForMs
}

func noWorker(c *Condition, nowMs int64) (Need, bool) {
	f := c.Figures
	// What a target that fails is given now and then tries it.
	starts := c.Target == "" && (f[wire.FigureStartedPer] > 0 || c.Beside.Started > 0)
	if !c.Waits(nowMs) || f[wire.FigurePaused] != 0 || starts {
		return Need{}, false
	}
	n := Need{Need: wire.Need{
		Severity: wire.NeedCritical, Reason: wire.NeedNoWorker, State: wire.StateReady,
		Count: f[wire.FigureReady], SinceMs: f[wire.FigureOldestReadyAt],
	}}
	who := "no worker"
	switch {
	case c.Target != "":
		who = "a target that gets none, because " + c.Target
	case c.Takers == 1:
		who = "1 worker that takes none"
	case c.Takers > 1:
		who = fmt.Sprintf("%d workers that take none", c.Takers)
	}
	n.Sentence = fmt.Sprintf("has %s and %s; the oldest has waited since %s", tasks(n.Count, "ready"), who, moment(n.SinceMs, nowMs))
	return n, true
}

func growing(c *Condition, nowMs int64) (Need, bool) {
	b, ready := c.Beside, c.Figures[wire.FigureReady]
	grown := ready - b.ReadyThen
	if b.SpanMs < trendForMs || b.Started == 0 || grown*1000 < b.SpanMs || c.Figures[wire.FigurePaused] != 0 {
		return Need{}, false
	}
	perSecond := float64(grown) * 1000 / float64(b.SpanMs)
	// What workers take in an hour at this rate.
	hour := float64(b.Started) * 1000 / float64(b.SpanMs) * hourS
	n := Need{Need: wire.Need{Severity: wire.NeedWarning, Reason: wire.NeedGrowing, State: wire.StateReady, Count: ready}}
	aheadS := (hour - float64(ready)) / perSecond
	switch {
	case aheadS <= 0:
		n.Severity = wire.NeedCritical
		n.Sentence = fmt.Sprintf("grows by %.0f/s and has %.1f h of backlog", perSecond, float64(ready)/hour)
	case aheadS*1000 > aheadMs:
		return Need{}, false
	default:
		n.Sentence = fmt.Sprintf("grows by %.0f/s; at this rate it has 1 h of backlog at %s", perSecond, moment(nowMs+int64(aheadS*1000), nowMs))
	}
	return n, true
}

// LongBefore is the time since which a delivery would have to run to be long for its queue: ten
// times as long as 99 of 100 take, and at least a minute. It is 0 if nobody knows how long they take.
func (b *Beside) LongBefore(nowMs int64) int64 {
	if b.RunP99Ms == 0 {
		return 0
	}
	return nowMs - max(slowAfterMs, slowTimes*b.RunP99Ms)
}

func slow(c *Condition, nowMs int64) (Need, bool) {
	found := c.Beside.Slow
	n := Need{Need: wire.Need{
		Severity: wire.NeedWarning, Reason: wire.NeedSlow, State: wire.StateInProgress,
		Count: min(found.Count, c.Figures[wire.FigureInProgress]), SinceMs: found.SinceMs,
	}}
	what, whose := fmt.Sprintf("%d tasks that run too long, the first", n.Count), "their workers"
	if n.Count == 1 {
		what, whose = "a task that runs", "its worker"
	}
	n.Sentence = fmt.Sprintf("has %s since %s, but 99 of 100 end within %s: %s may hang",
		what, moment(n.SinceMs, nowMs), lasting(c.Beside.RunP99Ms), whose)
	return n, n.Count > 0
}

// lasting is a time with about two digits, as a histogram knows it.
func lasting(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

func paused(c *Condition, nowMs int64) (Need, bool) {
	f := c.Figures
	if !c.Waits(nowMs) || f[wire.FigurePaused] == 0 {
		return Need{}, false
	}
	n := Need{Need: wire.Need{
		Severity: wire.NeedNotice, Reason: wire.NeedPaused, State: wire.StateReady,
		Count: f[wire.FigureReady], SinceMs: f[wire.FigureOldestReadyAt],
	}}
	n.Sentence = fmt.Sprintf("is paused and has %s; the oldest has waited since %s", tasks(n.Count, "ready"), moment(n.SinceMs, nowMs))
	return n, true
}

func deadLetters(c *Condition, nowMs int64) (Need, bool) {
	n := Need{Need: wire.Need{
		Severity: wire.NeedWarning, Reason: wire.NeedDead, State: wire.StateDead,
		Count: c.Figures[wire.FigureDead], SinceMs: c.Beside.Dead.SinceMs,
	}}
	n.Sentence = fmt.Sprintf("has %d dead letters", n.Count)
	if n.Count == 1 {
		n.Sentence = "has 1 dead letter"
	}
	if n.SinceMs != 0 {
		n.Sentence += " since " + moment(n.SinceMs, nowMs)
	}
	if d := &c.Beside.Dead; d.Same > 1 && d.Reason != "" {
		n.Told = fmt.Sprintf("; %d of the newest %d: %.100s", d.Same, d.Of, d.Reason)
	}
	return n, n.Count > 0
}

func setAside(c *Condition, _ int64) (Need, bool) {
	b := c.Beside
	n := Need{Need: wire.Need{Severity: wire.NeedWarning, Reason: wire.NeedSetAside, Count: b.Unreadable + b.Suspect}}
	lost := "lost " + tasks(b.Unreadable, "unreadable")
	held := "held back " + tasks(b.Suspect, "suspect") + ": three deliveries in a row did not arrive"
	switch {
	case b.Suspect == 0:
		n.Sentence = lost + ": their records were set aside"
	case b.Unreadable == 0:
		n.Sentence = held
	default:
		n.Sentence = lost + ", whose records were set aside, and " + held
	}
	return n, n.Count > 0
}

// OfDisk is what the disk needs, if the guard refuses anything.
func OfDisk(f *wire.ServerFigures) (Need, bool) {
	said, refuses := diskSays[f.DiskGuard]
	return Need{Need: wire.Need{
		Severity: wire.NeedCritical, Reason: wire.NeedDisk,
		Sentence: fmt.Sprintf("the disk guard is at %s: %s; %d MiB are free", f.DiskGuard, said, f.DiskFreeBytes>>20),
	}}, refuses
}

// diskSays is what the levels of the disk guard refuse.
var diskSays = map[string]string{
	"no-enqueue": "new tasks are refused", "no-grant": "new tasks are refused and none is given to workers",
	"only-delete": "only what frees space is done",
}

// WorstFirst sorts needs and keeps the worst ones.
func WorstFirst(needs []wire.Need) []wire.Need {
	rank := func(n *wire.Need) int {
		return slices.Index([]string{wire.NeedCritical, wire.NeedWarning, wire.NeedNotice}, n.Severity)
	}
	slices.SortStableFunc(needs, func(a, b wire.Need) int {
		// A need of the whole server comes before those of queues.
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(min(len(a.Command), 1), min(len(b.Command), 1)), cmp.Compare(b.Count, a.Count))
	})
	return needs[:min(len(needs), maxNeeds)]
}

// tasks counts tasks of a kind.
func tasks(n int64, kind string) string {
	if n == 1 {
		return "1 " + kind + " task"
	}
	return fmt.Sprintf("%d %s tasks", n, kind)
}

// moment is a time of day, or a date for one that is a day away.
func moment(atMs, nowMs int64) string {
	at := time.UnixMilli(atMs).UTC()
	if max(atMs-nowMs, nowMs-atMs) >= 24*3600_000 {
		return at.Format("2006-01-02 15:04 UTC")
	}
	return at.Format("15:04 UTC")
}
