package sim

import (
	"cmp"
	"slices"

	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// Workers report how far they are and what their programs print. Who asks is told the newest report
// at once; it is on disk a second later, and stays with the task when the delivery ends.

// said is what the reports of a delivery come to: its progress as it is kept, empty for none, and
// whether it has printed.
type said struct {
	atMs     int64
	progress string
	printed  bool
}

// reportWithinMs is after how long a report must be on disk.
const reportWithinMs = 1000

// madeNote is a report that a round has taken, for whoever watches.
type madeNote struct {
	shard.Note
	batch uint64
}

func progressText(p *wire.TaskProgress) string {
	if p == nil {
		return ""
	}
	return string(wire.AppendProgress(nil, p))
}

// saidOf is what the delivery in progress has said, saidLast what is shown of the task.
func (t *task) saidOf() said {
	if len(t.said) == 0 {
		return said{}
	}
	return t.said[len(t.said)-1]
}

func (t *task) saidLast() said { return t.shows(t.saidOf()) }

func (t *task) shows(s said) said {
	return said{0, cmp.Or(s.progress, t.before.progress), s.printed || t.before.printed}
}

// report takes the place of all that was said before. It confirms the delivery.
func (m *model) report(a *shard.Report) {
	t := m.held(&a.Holder)
	if t == nil {
		return
	}
	m.confirm(t)
	next, note := t.saidOf(), shard.Note{AtMs: m.at.NowMs, TaskID: t.id, Delivery: t.deliveries, Output: a.Output}
	next.atMs, next.printed = m.at.NowMs, next.printed || a.Output != nil
	if a.Progress != nil {
		note.Progress = &wire.TaskProgress{ProgressRequest: *a.Progress, AtMs: m.at.NowMs, Delivery: t.deliveries}
		next.progress = progressText(note.Progress)
	}
	if t.said == nil {
		t.said = []said{{}}
	}
	t.said = append(slices.Clip(t.said), next)
	if m.at.note >= len(m.at.Outcome.Notes) {
		violate("every report is told", "none is left of %d for %+v", len(m.at.Outcome.Notes), note)
	}
	got := m.at.Outcome.Notes[m.at.note]
	if m.at.note++; progressText(got.Progress) != progressText(note.Progress) {
		violate("every report is told", "want %+v, told %+v", note.Progress, got.Progress)
	}
	if got.Progress, note.Progress = nil, nil; got != note {
		violate("every report is told", "want %+v, told %+v", note, got)
	}
	expect[*shard.Reported](m, a.Asker)
}

// keepsReports drops what cannot be the last on disk any more. Small batches may take longer.
func (m *model) keepsReports() {
	if m.at.note < len(m.at.Outcome.Notes) {
		violate("every report has its cause", "no rule explains %+v", m.at.Outcome.Notes[m.at.note])
	}
	if m.at.Space >= store.OnlyDelete || m.limits.BatchBytes != shard.DefaultLimits.BatchBytes {
		return
	}
	for _, t := range m.leased[m.at.Shard] {
		for len(t.said) > 1 && t.said[1].atMs+reportWithinMs <= m.at.NowMs {
			m.touch(t)
			t.said = t.said[1:]
		}
	}
}

// findReport finds after a crash what is on disk of a delivery in progress.
func (m *model) findReport(t *task) {
	if len(t.said) == 0 {
		return
	}
	seen := m.look(t)
	for _, s := range t.said {
		if shown := t.shows(s); seen != nil && progressText(seen.Progress) == shown.progress && seen.Printed == shown.printed {
			t.said = []said{s}
			return
		}
	}
	violate("a crash loses the last second of reports", "%v said %+v, left is %+v", t.id, t.said, seen)
}

// checkReport holds what is shown of a task against what was said: the newest, or of a delivery in
// progress one that may be the last on disk.
func (t *task) checkReport(seen *wire.Task, newest bool) {
	shown := said{0, progressText(seen.Progress), seen.Printed}
	if shown == t.saidLast() {
		return
	}
	if newest || !slices.ContainsFunc(t.said, func(s said) bool { return t.shows(s) == shown }) {
		violate("the newest report is shown", "%v said %+v after %+v, shown is %+v", t.id, t.said, t.before, shown)
	}
}

// reportIsOnDisk says of a world at rest that a report is on disk when its second is over.
func (w *world) reportIsOnDisk(t *task) {
	if len(t.said) > 0 && t.saidOf().atMs+reportWithinMs <= w.nowMs {
		t.checkReport(w.read(t), true)
	}
}

// noted is EngineOptions.Notes: reports come once, in order, when they are durable and before the
// events of their round.
func (w *world) noted(shardNo int, notes []shard.Note) {
	s := w.server
	for _, n := range notes {
		if len(s.notes[shardNo]) == 0 || s.notes[shardNo][0].Note != n || s.notes[shardNo][0].batch > s.durable[shardNo] {
			violate("reports are told once, in order and durable", "%+v, made are %+v, durable is %d", n, s.notes[shardNo], s.durable[shardNo])
		}
		if made := s.events.shards[shardNo].made; len(made) > 0 && made[0].batch < s.notes[shardNo][0].batch {
			violate("reports are told once, in order and durable", "%+v before %+v", n, made[0])
		}
		s.notes[shardNo] = s.notes[shardNo][1:]
	}
}

func (w *world) nothingIsUnnoted() {
	for shardNo, left := range w.server.notes {
		if len(left) > 0 {
			violate("reports are told once, in order and durable", "shard %d keeps %+v", shardNo, left)
		}
	}
}

// progressSome is a worker that says how far it is, or what its program prints, over its session
// or over HTTP, mostly of a delivery that it has, and mostly again and again.
func (w *world) progressSome() {
	for range 1 + w.chance.IntN(3) {
		w.progressOnce()
		if w.chance.oneIn(2) {
			w.nowMs += 200
		}
	}
}

func (w *world) progressOnce() {
	c := w.chance
	progress := &wire.ProgressRequest{Percent: c.IntN(101), HasPercent: true, Note: pick(c, []string{"", "half way"}), Data: pick(c, [][]byte{nil, []byte(`{"n":1}`)})}
	var output *wire.OutputRequest
	if c.oneIn(3) {
		progress, output = nil, &wire.OutputRequest{Stream: pick(c, []string{"", wire.StreamErr}), Text: "page 1\n"}
	}
	if cl := pick(c, w.clients); cl.conn != nil && !c.oneIn(4) {
		cl.reports(progress, output)
		return
	}
	if len(w.overheard) == 0 {
		return
	}
	ref := pick(c, w.overheard)
	t := w.model.tasks[ref.TaskID]
	if t == nil {
		return
	}
	owner := shard.Owner{Tenant: t.tenant, Subject: t.speaker()}
	if c.oneIn(5) {
		owner.Subject, ref.Token = pick(c, subjects), wire.Token{}
	}
	w.trace.say("  POST report about %s by %s", w.name(ref.TaskID), owner.Subject)
	call := func(to shard.Asker) shard.Message {
		return &shard.Report{Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}, Progress: progress, Output: output}
	}
	(&request{world: w, call: call, about: ref.TaskID}).post()
}

// reports says it over the session of the client.
func (cl *client) reports(progress *wire.ProgressRequest, output *wire.OutputRequest) {
	c := cl.world.chance
	var ref wire.TaskRef
	switch {
	case len(cl.inHand) > 0 && !c.oneIn(8):
		ref = cl.inHand[c.IntN(min(2, len(cl.inHand)))].ref
	case len(cl.past) > 0:
		ref = pick(c, cl.past)
	default:
		return
	}
	if output != nil {
		f := &wire.Output{TaskRef: ref, OutputRequest: *output}
		f.Ref = cl.expects(f, ref)
		cl.say(f)
		return
	}
	f := &wire.Progress{TaskRef: ref, ProgressRequest: *progress}
	f.Ref = cl.expects(f, ref)
	cl.say(f)
}
