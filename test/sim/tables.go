package sim

import (
	"fmt"
	"slices"

	"codeq/record"
	"codeq/wire"
)

func (v *viewer) takeRows(w *view, rows []wire.QueueRow) {
	for _, r := range rows {
		if r.Slot == wire.TotalSlot {
			w.total = r.Figures
			continue
		}
		name := v.names[r.Slot]
		switch {
		case name.Command == "":
			violate("names come before rows", "%s has a row of slot %d", v.name, r.Slot)
		case !v.rights.sees(name.Tenant):
			violate("no event of another tenant", "%s has a row of %+v", v.name, name)
		case !matches(w.ask.Commands, name.Command):
			violate("a subscription has what it asks for", "%s asks for %v and has a row of %+v", v.name, w.ask.Commands, name)
		}
		w.rows[r.Slot] = r.Figures
	}
}

func matches(patterns []string, command string) bool {
	return len(patterns) == 0 || slices.Contains(patterns, command) || slices.Contains(patterns, wire.AllCommands)
}

// differs compares the rows of a client with what the board must show.
func (v *viewer) differs(w *view, want *shown) string {
	seen := make(map[record.QueueKey]wire.Figures)
	for slot, row := range w.rows {
		name := v.names[slot]
		seen[record.QueueKey{Command: name.Command, Tenant: name.Tenant}] = row
	}
	var total wire.Figures
	for q, row := range want.rows {
		if !v.rights.sees(q.Tenant) || !matches(w.ask.Commands, q.Command) {
			continue
		}
		if got := seen[q]; got != row {
			return fmt.Sprintf("%s has %v of queue %v, true are %v at %v", v.name, got, q, row, want.at)
		}
		delete(seen, q)
		oldest := total[wire.FigureOldestReadyAt]
		for i, n := range row {
			total[i] += n
		}
		if total[wire.FigureOldestReadyAt] = oldest; row[wire.FigureOldestReadyAt] != 0 && (oldest == 0 || row[wire.FigureOldestReadyAt] < oldest) {
			total[wire.FigureOldestReadyAt] = row[wire.FigureOldestReadyAt]
		}
	}
	copy(total[wire.FigureWaitP50:wire.FigurePaused], w.total[wire.FigureWaitP50:wire.FigurePaused])
	if w.total != total {
		return fmt.Sprintf("%s has the total %v, true is %v at %v", v.name, w.total, total, want.at)
	}
	for q, row := range seen {
		if row != (wire.Figures{}) {
			return fmt.Sprintf("%s has %v of queue %v, which is none", v.name, row, q)
		}
	}
	return ""
}

// totalDiffers compares the percentiles of a total with those of all times of its queues.
func (v *viewer) totalDiffers(w *view, want *shown) string {
	var all happened
	for q, h := range want.times {
		if v.rights.sees(q.Tenant) && matches(w.ask.Commands, q.Command) {
			all.wait, all.run = append(all.wait, h.wait...), append(all.run, h.run...)
		}
	}
	got := w.total[wire.FigureWaitP50:wire.FigurePaused]
	if times := []int64{percentile(all.wait, 50), percentile(all.wait, 99), percentile(all.run, 50), percentile(all.run, 99)}; !slices.Equal(got, times) {
		return fmt.Sprintf("%s has the percentiles %v in its total, true are %v", v.name, got, times)
	}
	return ""
}

// isLate holds the rows of a client that has no tick to read against the board. The server
// may have looked last when they began to differ, and looks again when the time between two
// ticks is over.
func (v *viewer) isLate(w *view, nowMs int64) {
	diff, everyMs := "", int64(wire.MinWatchEveryMs)
	switch w.ask.Kind {
	case wire.WatchQueues:
		diff, everyMs = v.differs(w, v.audience.shown), int64(w.ask.EveryMs)
	case wire.WatchWorkers:
		if v.differsInSessions(w) {
			diff = fmt.Sprintf("%s has the sessions %+v, true are %+v", v.name, w.sessions, v.audience.rosters[v.tenant])
		}
	case wire.WatchServer:
		if served := v.audience.served; w.servedMs != served.atMs || nowMs >= served.atMs+secondMs {
			violate("the server is shown as it is", "%s has figures of %d, it is %d and those of %d are known", v.name, w.servedMs, nowMs, served.atMs)
		}
	}
	switch {
	case diff == "":
		w.differsMs = 0
	case w.differsMs == 0:
		w.differsMs = nowMs
	case nowMs >= w.differsMs+everyMs:
		violate("who watches has the figures", "for %d ms %s", nowMs-w.differsMs, diff)
	}
}
