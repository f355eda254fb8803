package sim

// The faults, each of a kind that somebody has made before.
var mutants = []mutant{{
	name: "reply before sync",
	edit: edit{
		file: "shardactor/gate.go",
		old:  "if batch <= o.synced && len(o.pending) == 0 {", new: "if true {",
	},
	caught: []string{"no effect before its batch is durable"},
}, {
	name: "publish what was not synced",
	edit: edit{
		file: "shardactor/gate.go",
		old:  "o.pending[n].batch <= o.synced {", new: "o.pending[n].batch <= o.synced+1 {",
	},
	caught: []string{"no effect before its batch is durable"},
}, {
	name: "forget a counter",
	edit: edit{
		file: "shard/shard.go",
		old:  "if !counters.IsZero() {", new: "if !counters.IsZero() && counters.Dead == 0 {",
	},
	caught: []string{"the database agrees with itself", "figures add up"},
}, {
	name: "skip the check of the token",
	edit: edit{
		file: "shard/delivery.go",
		old:  "isOf(h, e.Lease.Subject) && mayEnd(h.Owner, h.Token, &e.Lease) {",
		new:  "isOf(h, e.Lease.Subject) {",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause", "every change has its event", "a task moves as its lifecycle says"},
}, {
	name: "skip the owner",
	edit: edit{
		file: "shard/delivery.go",
		old:  "if !isOf(&m.Holder, newestSubject(t, e)) {",
		new:  "if false {",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause"},
}, {
	name: "reuse a token",
	edit: edit{
		file: "shard/grant.go",
		old:  "Token: lease.DrawToken(s.random), Delivery", new: "Token: func() (k wire.Token) { k[0] = lease.DrawToken(s.random)[0] | 1; return k }(), Delivery",
	},
	caught: []string{"a token names one delivery"},
}, {
	name: "drop a due timer",
	edit: edit{
		file: "shard/shard.go",
		old:  "next := s.index.NextDueAtMs()\n", new: "var next int64\n",
	},
	caught: []string{"what is due happens"},
}, {
	name: "sleep past a lease",
	edit: edit{
		file: "shard/shard.go",
		old:  "if at := s.leases.NextAtMs(); at != 0 {", new: "if at := s.leases.NextAtMs(); at != 0 && next == 0 {",
	},
	caught: []string{"what is due happens"},
}, {
	name: "take without the waiting bit",
	edit: edit{
		file: "internal/credit/window.go",
		old:  "w.word.CompareAndSwap(word, word|bit)", new: "return false",
	},
	caught: []string{"no ready task sits beside an open session with credit"},
}, {
	name: "return a credit twice",
	edit: edit{
		file: "session/answer.go",
		old:  "c.out.Credit += credits", new: "c.out.Credit += 2 * credits",
	},
	caught: []string{"credit adds up"},
}, {
	name: "return a credit at a lapse",
	edit: edit{
		file: "session/delivery.go",
		old:  "c.send(&wire.Revoked{TaskRef: e.TaskRef, Reason: e.Reason})",
		new:  "c.send(&wire.Revoked{TaskRef: e.TaskRef, Reason: e.Reason})\n\tc.out.Credit++",
	},
	caught: []string{"credit adds up"},
}, {
	name: "reuse a credit for ever",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "s.out.CreditReturns = append(s.out.CreditReturns, CreditReturn{Consumer: sub.consumer, Credits: sub.credit})", new: "",
	},
	caught: []string{"no ready task sits beside an open session with credit", "credit adds up"},
}, {
	name: "return a credit that is reused",
	edit: edit{
		file: "session/answer.go",
		old:  "if !r.reused {", new: "if credits == 1 {",
	},
	caught: []string{"credit adds up"},
}, {
	name: "reuse a credit and forget it",
	edit: edit{
		file: "shard/credit.go",
		old:  "k.answer.CreditReused = false", new: "",
	},
	caught: []string{"no ready task sits beside an open session with credit", "credit adds up"},
}, {
	name: "put back at the tail",
	edit: edit{
		file: "shard/delivery.go",
		old:  "cause: cause, toOldPlace: true}", new: "cause: cause}",
	},
	caught: []string{"what comes before a task is counted", "first in, first out, by priority"},
}, {
	name: "count an undelivered task",
	edit: edit{
		file: "shard/suspect.go",
		old:  "t.Undelivered++\n", new: "t.Undelivered++\n\tt.Attempts++\n",
	},
	caught: []string{"the store says what happened", "a task comes out as it went in"},
}, {
	name: "expire before messages",
	edit: edit{
		file: "shard/shard.go",
		old:  "s.makeFreedReady()\n	for _, m := range", new: "s.makeFreedReady()\n	s.due()\n	for _, m := range",
	},
	caught: []string{"messages come before expiries", "a task leaves the place it was in", "a task moves as its lifecycle says", "a request is answered as the protocol says"},
}, {
	name: "shorten a lease at restart",
	edit: edit{
		file: "shard/shard.go",
		old:  "expires = min(found.Lease.DeadlineMs, nowMs+resumeGraceMs)", new: "expires = min(found.Lease.DeadlineMs, nowMs+resumeGraceMs/2)",
	},
	caught: []string{"a lease lasts as long as promised"},
}, {
	name: "acknowledge a lease that is not stored",
	edit: edit{
		file: "shard/lease.go",
		old:  "ahead := until > e.Lease.DeadlineMs\n", new: "ahead := until > e.Lease.DeadlineMs+3_600_000\n",
	},
	caught: []string{"a lease lasts as long as promised"},
}, {
	name: "no grace after a stall",
	edit: edit{
		file: "shard/shard.go",
		old:  "s.heardUntilMs, s.holdUntilMs = s.holdUntilMs, s.now+resumeGraceMs\n", new: "s.heardUntilMs, s.holdUntilMs = s.holdUntilMs, s.now\n",
	},
	caught: []string{"after a stall clients speak first"},
}, {
	name: "no grace after a full disk",
	edit: edit{
		file: "shard/shard.go",
		old:  "	spaceCame := s.wasFull && !full\n", new: "	spaceCame := false\n",
	},
	caught: []string{"after a stall clients speak first"},
}, {
	name: "no grace after a disk that was full for more than a round",
	edit: edit{
		file: "shard/shard.go",
		old:  "	s.wasFull = full\n", new: "	s.wasFull = full && !s.wasFull\n",
	},
	caught: []string{"after a stall clients speak first"},
}, {
	name: "hold a lease again at every stall",
	edit: edit{
		file: "shard/shard.go",
		old:  "s.heardUntilMs, s.holdUntilMs = s.holdUntilMs, s.now+resumeGraceMs\n", new: "s.heardUntilMs, s.holdUntilMs = 0, s.now+resumeGraceMs\n",
	},
	caught: []string{"what is due happens"},
}, {
	name: "let a stall within a hold begin it anew",
	edit: edit{
		file: "shard/shard.go",
		old:  " || s.now < s.holdUntilMs {\n\t\treturn\n\t}\n\ts.heard", new: " {\n\t\treturn\n\t}\n\ts.heard",
	},
	caught: []string{"after a stall clients speak first", "a lease lasts as long as promised"},
}, {
	name: "delete a lease that was put again as if it was put once",
	edit: edit{
		file: "shard/lease.go",
		old:  "\t\te.PutAgain = true\n", new: "",
	},
	caught: []string{"only a fault of the disk ends the process", "the database agrees with itself", "the store says what happened"},
}, {
	name: "lose the overlay",
	edit: edit{
		file: "store/read_view.go",
		old:  "r, state := v.overlay.record(id); state != untouched {", new: "r, state := v.overlay.record(id); state != untouched && r == nil {",
	},
	caught: []string{"a task moves as its lifecycle says", "a task leaves the place it was in", "the database agrees with itself",
		"no ready task sits beside an open session with credit", "a claim gets what there is",
		"one key makes one task", "a request is answered as the protocol says", "every event has a cause", "every change has its event", "first in, first out, by priority"},
}, {
	name: "grant to another tenant",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "func (s *Shard) tenantOf(name string) *tenant {\n", new: "func (s *Shard) tenantOf(name string) *tenant {\n	name = \"\"\n",
	},
	caught: []string{"no task of another tenant", "a reason is the one that holds"},
}, {
	name: "forget the idempotency key",
	edit: edit{
		file: "shard/enqueue.go",
		old:  "batch.PutIdempotencyKey(key, m.IdempotencyKey, t.ID)", new: "",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause", "one key makes one task", "the database agrees with itself"},
}, {
	name: "accept a completion after a nack",
	edit: edit{
		file: "shard/delivery.go",
		old:  "t.LastToken = wire.Token{}\n", new: "",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause"},
}, {
	name: "cancel what has ended",
	edit: edit{
		file: "shard/admin.go",
		old:  "	case t.Status == wire.StatusCancelled:\n", new: "	case t.Status == wire.StatusCancelled || t.Status == wire.StatusCompleted:\n",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause", "one completion stands", "no invariant breaks"},
}, {
	name: "complete what was cancelled",
	edit: edit{
		file: "shard/delivery.go",
		old:  "case t != nil && !t.Status.Terminal() && mayComplete(m, t, e):",
		new:  "case t != nil && t.Status == wire.StatusCancelled && t.LastSubject == m.Subject && t.Deliveries == 1:\n		s.tell(m.Sink, &Completed{Ref: m.Ref, Record: &wire.ResultRecord{TaskID: t.ID, Status: m.Status, CompletedAtMs: s.now}})\n	case t != nil && !t.Status.Terminal() && mayComplete(m, t, e):",
	},
	caught: []string{"a request is answered as the protocol says", "one completion stands"},
}, {
	name: "tell no worker of a cancel",
	edit: edit{
		file: "shard/admin.go",
		old:  "		s.revoke(e, wire.RevokedCancelled)\n", new: "",
	},
	caught: []string{"a request is answered as the protocol says"},
}, {
	name: "return a credit at a cancel",
	edit: edit{
		file: "session/delivery.go",
		old:  "	c.send(&wire.Revoked{TaskRef: e.TaskRef, Reason: e.Reason})\n",
		new:  "	c.send(&wire.Revoked{TaskRef: e.TaskRef, Reason: e.Reason})\n	if e.Reason == wire.RevokedCancelled {\n		c.out.Credit++\n	}\n",
	},
	caught: []string{"credit adds up"},
}, {
	name: "hand out what is paused",
	edit: edit{
		file: "shard/grant.go",
		old:  "q.freezes == 0 && !q.settings.Paused }", new: "q.freezes == 0 }",
	},
	caught: []string{"a paused queue hands out nothing"},
}, {
	name: "forget a pause at a restart",
	edit: edit{
		file: "shard/settings.go",
		old:  "		q.settings = found[i].Settings\n", new: "		q.settings = found[i].Settings\n		q.settings.Paused = false\n",
	},
	caught: []string{"a paused queue hands out nothing", "settings never go back", "settings are what was set"},
}, {
	name: "start without the settings of the home",
	edit: edit{
		file: "shardactor/engine.go",
		old:  "	copyNewest(recovered)\n", new: "",
	},
	caught: []string{"a paused queue hands out nothing", "settings never go back", "a retry waits as long as promised", "a lease is as long as was asked",
		"a task comes out as it went in", "the store says what happened", "no ready task sits beside an open session with credit", "a reason is the one that holds", "ended tasks stay as long as promised"},
}, {
	name: "answer a change before it holds everywhere",
	edit: edit{
		file: "shardactor/change.go",
		old:  "	}, c.next)\n", new: "	}, c.next)\n	if c.stage == copying {\n		c.next()\n	}\n",
	},
	caught: []string{"settings that were answered hold in every shard"},
}, {
	name: "remove ended tasks too early",
	edit: edit{
		file: "shard/retention.go",
		old:  "return cmp.Or(q.settings.RetentionSeconds*1000, s.retention.DoneForMs)",
		new:  "return cmp.Or(q.settings.RetentionSeconds*1000, s.retention.DoneForMs) / 2",
	},
	caught: []string{"ended tasks stay as long as promised"},
}, {
	name: "keep the key of a removed task",
	edit: edit{
		file: "shard/retention.go",
		old:  "			batch.DeleteIdempotencyKey(t.Queue(), t.IdempotencyKey)\n", new: "",
	},
	caught: []string{"the database agrees with itself", "one key makes one task"},
}, {
	name: "forget a queue that has something to remove",
	edit: edit{
		file: "shard/transition.go",
		old:  "	s.planEnded(q)\n", new: "	if !q.removal.IsIn() {\n		s.planEnded(q)\n	}\n",
	},
	caught: []string{"what is due happens"},
}, {
	name: "forget the history of a task whose delivery lapsed",
	edit: edit{
		file: "shard/transition.go",
		old:  "t.Deliveries == 1 && from == wire.LocationInProgress && !m.leavesLine()",
		new:  "t.Deliveries == 1",
	},
	caught: []string{"the database agrees with itself"},
}, {
	name: "keep the watermark above a task that is granted again",
	edit: edit{
		file: "index/queue.go",
		old:  "c.InProgress == 0 || rank < c.LeaseWatermark", new: "c.InProgress == 0",
	},
	caught: []string{"the database agrees with itself"},
}, {
	name: "purge: another than was meant",
	edit: edit{
		file: "shard/admin.go",
		old:  "|| t.EndedAtMs != m.EndedAtMs {", new: "|| t.EndedAtMs < m.EndedAtMs {",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause"},
}, {
	name: "purge: once more when its time is over",
	edit: edit{
		file: "shard/admin.go",
		old:  "	}\n	s.dropFromBatches(t)\n", new: "	}\n",
	},
	also:   []edit{{file: "index/queue.go", old: "	if *count < 0 {\n", new: "	if false {\n"}},
	caught: []string{"the database agrees with itself", "figures add up"},
}, {
	name: "waiting: count only equals",
	edit: edit{
		file: "index/ahead.go",
		old:  "		n += q.counters.Ready[higher]\n", new: "		n += 0 * q.counters.Ready[higher]\n",
	},
	caught: []string{"what comes before a task is counted", "a reason is the one that holds"},
}, {
	name: "waiting: forget who takes everything",
	edit: edit{
		file: "shard/admin.go",
		old:  "case q.subscribers.count+wildcard.count == 0:", new: "case q.subscribers.count == 0:",
	},
	caught: []string{"a reason is the one that holds"},
}, {
	name: "replace a completion",
	edit: edit{
		file: "shard/delivery.go",
		old:  "case t != nil && !t.Status.Terminal() && mayComplete(m, t, e):", new: "case t != nil && e == nil && t.ResultToken == m.Token && !m.Token.IsZero() && t.Status.Terminal():\n		s.span.Batch().PutResult(&wire.ResultRecord{TaskID: t.ID, Status: m.Status, CompletedAtMs: s.now})\n		s.tell(m.Sink, &Completed{Ref: m.Ref, Record: &wire.ResultRecord{TaskID: t.ID, Status: m.Status, CompletedAtMs: s.now}})\n	case t != nil && !t.Status.Terminal() && mayComplete(m, t, e):",
	},
	caught: []string{"a request is answered as the protocol says", "one completion stands"},
}, {
	name: "deliver before it is due",
	edit: edit{
		file: "index/index.go",
		old:  "if o == nil || atMs > nowMs {", new: "if o == nil || atMs > nowMs+50 {",
	},
	caught: []string{"nothing is delivered before it is due"},
}, {
	name: "one execution too many",
	edit: edit{
		file: "shard/delivery.go",
		old:  "if t.Attempts < t.MaxAttempts {", new: "if t.Attempts <= t.MaxAttempts {",
	},
	caught: []string{"a task moves as its lifecycle says", "attempts stay below their limit"},
}, {
	name: "a low priority overtakes",
	edit: edit{
		file: "index/queue.go",
		old:  "			return 0, record.PendingKey{}, false\n		}\n		return prio", new: "			continue\n		}\n		return prio",
	},
	caught: []string{"first in, first out, by priority"},
}, {
	name: "keep the age of a head that left",
	edit: edit{
		file: "index/window.go",
		old:  "	r.setWatermark(watermark)\n	r.noteHead()\n", new: "	r.setWatermark(watermark)\n",
	},
	caught: []string{"the database agrees with itself"},
}, {
	name: "a wake-up for bytes is lost",
	big:  true,
	edit: edit{
		file: "internal/credit/window.go",
		old:  "	w.untakenBytes.Add(-int64(payloadBytes))\n	w.rouse()\n", new: "	w.untakenBytes.Add(-int64(payloadBytes))\n",
	},
	caught: []string{"no ready task sits beside an open session with credit"},
}, {
	name: "refill inside a round",
	edit: edit{
		file: "shard/grant.go",
		old:  "		prio, k, ok := q.index.HeadReady()\n",
		new:  "		s.refill()\n		prio, k, ok := q.index.HeadReady()\n",
	},
	also: []edit{
		{file: "store/span.go", old: "if !sp.batch.Empty() {", new: "if false {"},
		{file: "index/refill.go", old: "if found != f.Limit {", new: "if false {"},
	},
	caught: []string{"first in, first out, by priority", "one live token per task", "only what is ready is handed out",
		"no ready task sits beside an open session with credit", "what is due happens", "a task moves as its lifecycle says",
		"the database agrees with itself"},
}, {
	name: "http: keep what a client that left did not get",
	edit: edit{
		file: "shard/lease.go",
		old:  "	if e != nil && consumer.OverHTTP {\n", new: "	if false {\n",
	},
	caught: []string{"every change has its event", "a task moves as its lifecycle says", "a task leaves the place it was in",
		"a request is answered as the protocol says"},
}, {
	name: "http: act on a session's delivery without its token",
	edit: edit{
		file: "shard/delivery.go",
		old:  "return l.OverHTTP && (", new: "return (",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause"},
}, {
	name: "http: act for another worker",
	edit: edit{
		file: "shard/delivery.go",
		old:  "(owner.WorkerID == \"\" || owner.WorkerID == l.WorkerID)", new: "true",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause"},
}, {
	name: "http: answer a claim before the head was read",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "if cut && ready > 0 &&", new: "if false &&",
	},
	caught: []string{"a claim gets what there is"},
}, {
	name: "http: end claims with their sockets at a restart",
	edit: edit{
		file: "shard/shard.go",
		old:  "if !found.Lease.Session.IsZero() {", new: "if true {",
	},
	caught: []string{"a lease lasts as long as promised", "a task moves as its lifecycle says", "every event has a cause"},
}, {
	name: "http: forget how a delivery was made",
	edit: edit{
		file: "record/lease.go",
		old:  "f.flag(4, \"overHttp\", &l.OverHTTP)", new: "",
	},
	caught: []string{"a request is answered as the protocol says", "every event has a cause", "every change has its event",
		"a task leaves the place it was in", "a task moves as its lifecycle says", "credit adds up"},
}, {
	name:   "numbers: give a queue the number of another",
	edit:   edit{file: "store/batch.go", old: "	m.Queues, m.Newer = b.span.marks.Queues, b.span.marks.Newer\n", new: ""},
	caught: []string{"the database agrees with itself"},
}, {
	name:   "numbers: keep the name of a queue that is gone",
	edit:   edit{file: "store/batch_numbers.go", old: "if is && !number.counters && !number.settings {", new: "if is && number.n == 0 {"},
	caught: []string{"the database agrees with itself"},
}}
