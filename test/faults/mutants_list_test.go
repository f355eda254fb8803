package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is a deliberate fault of the kind that its test is about: old, which is
// in the file once, becomes new.
type mutant struct{ test, file, old, new string }

var mutants = []mutant{
	{"TestN11OnePoison", "shard/suspect.go", "	if isSuspect(t) {\n", "	if isSuspect(t) {\n		t.Attempts++\n"},
	{"TestN11SlowLine", "session/pace.go", "		p.bound = fits\n", "		p.bound = mostUntakenBytes\n"},
	{"TestN11LongMessage", "session/writer.go", "	case taken >= s.pingEnd:\n", "	case true:\n"},
	{"TestN11SlowLineAndTheSDK", "session/clock.go", " || late || e.Hears:\n", " || late:\n"},
	{"TestN11ClaimOver", "internal/httpapi/claim.go", "			extend: func() { k.extendLeases(granted) }, extendEvery: extendEvery(granted),\n", ""},
	{"TestN11SlowBodies", "internal/httpapi/body.go", "	if err != nil || b.bytes < b.step {\n", "	if err != nil || b.bytes > 0 {\n"},
	{"TestA01", "shard/subscribers.go", "			s.undeliver(e, code)\n", ""},
	{"TestN14Silent", "internal/server/listener.go", "	if !full || displaced == nil {\n		return !full\n	}\n", "	if !full || displaced != nil {\n		return true\n	}\n"},
	{"TestN13Log", "cmd/codeq/detached.go", "	default:\n		s.lost.Add(1)\n	}\n	return len", "	}\n	return len"},
	{"TestN07WaitsOutliveAProxy", "client/tries.go", "	waitResult:    passing | putOff | late,\n", "	waitResult:    passing&^gateway | putOff | late,\n"},
	{"TestN07WaitsOutliveARestart", "client/tries.go", "	waitTask:      passing&^cutShort | putOff | late,\n", "	waitTask:      putOff | away | unreached | late,\n"},
	{"TestN07TheEnd", "client/tries.go", "		return fmt.Errorf(\"the wait of %s is over; what happened last: %w\", waitFor, err)\n", "		return fmt.Errorf(\"the wait of %s is over\", waitFor)\n"},
	{"TestN08", "client/redirect.go", "	case status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect:\n", "	case status == http.StatusSeeOther:\n"},
	{"TestX04", "client/unreached.go", "	case isTLS(err):\n		return mistrust(at, err)\n", "	case isTLS(err):\n		how = broken\n"},
	{"TestU04ARun", "lease/table.go", "	t.setDue(e, e.UntilMs(expiresAtMs))\n", "	t.setDue(e, expiresAtMs)\n"},
	{"TestU04LimitsOutlive", "index/index.go", "	q.expiring.restore()\n", ""},
	{"TestU04WhatHas", "shard/lease.go", "		s.transition(t, s.expired(t, move{}))\n", "		t.Priority = 9\n"},
	{"TestU04AProgram", "client/delivery.go", "	if d.Timeout == 0 {\n		return own, cancel\n	}\n", "	if d.Timeout == 0 || d.Timeout > 0 {\n		return own, cancel\n	}\n"},
	{"TestA02", "shard/subscribers.go", "s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))", "s.leases.Move(e, s.now+3_600_000)"},
	{"TestA03WorkerThatNeverAnswers", "internal/credit/window.go", "if free(word) > 0 && word&aloneBit == 0 && w.hasWay() {", "if word&aloneBit == 0 && w.hasWay() {"},
	{"TestA03WorkerThatDoesNotRead", "shard/subscribers.go", "			s.undeliver(e, code)\n", "			s.lose(e, record.CauseSessionGone)\n"},
	{"TestA04", "shard/transition.go", "		s.joinRings(q)\n", "		if m.cause == record.CauseEnqueue {\n			s.joinRings(q)\n		}\n"},
	{"TestA05", "shard/subscribers.go", "	s.socketEnded(m.Consumer, m.Code)\n", ""},
	{"TestA06", "client/link.go", "return time.Duration(pingSeconds) * time.Second * 5 / 2", "return time.Duration(pingSeconds) * time.Hour"},
	{"TestA07", "shard/lease.go", "if m.Tasks != nil {", "if true {"},
	{"TestA08Short", "shard/subscribers.go", "s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))", "s.leases.Move(e, s.now)"},
	{"TestA08Long", "shard/subscribers.go", "s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))", "s.leases.Move(e, e.AckedUntilMs)"},
	{"TestA09", "shard/lease.go", "			answer.Lost = append(answer.Lost, ref)\n", ""},
	{"TestA10", "shard/subscribers.go", "s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))", "s.leases.Move(e, e.AckedUntilMs)"},
	{"TestA11", "session/clock.go", "k.pingAtMs = nowMs + k.pingForMs", "k.pingAtMs = nowMs + 60*k.pingForMs"},
	{"TestA12", "session/clock.go", "if k.missed >= maxMissedPings {", "if false {"},
	{"TestA14", "shard/subscribers.go", "		return inFlightA < inFlightB", "		return inFlightA > inFlightB"},
	{"TestA15", "shard/delivery.go", "		return l.Token == token\n", "		return true\n"},
	{"TestA16", "shard/lease.go", "	s.leases.Move(e, until)\n", ""},
	{"TestA17", "shard/shard.go", "	s.leases.Grant(e, expires)\n", "	s.leases.Grant(e, expires+3_600_000)\n"},
	{"TestA18", "shard/shard.go", "		expires = min(found.Lease.DeadlineMs, nowMs+resumeGraceMs)\n", "		expires = nowMs + 3_600_000\n"},
	{"TestA19", "shard/subscribers.go", "s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))", "s.leases.Move(e, s.now+3_600_000)"},
	{"TestA20", "shard/transition.go", "	q.index.RemoveLeased()\n", ""},
	{"TestA21", "shard/lease.go", "	t.Losses++\n", "	t.Losses++\n	t.Attempts++\n"},
	{"TestA23", "shard/lease.go", "	s.retry(t, s.placeAt(s.now+delayMs, cause), wire.ErrorLeaseExpired)\n", "	s.transition(t, s.placeAt(s.now+delayMs, cause))\n"},
	{"TestA40", "store/recovery.go", "return record.ParseCounters(value, &r.Queues[len(r.Queues)-1].Counters)\n", "record.ParseCounters(value, &r.Queues[len(r.Queues)-1].Counters)\n\t\treturn record.ErrDamaged\n"},
	{"TestA41", "store/read_order.go", "record.PendingKey{Seq: c.ReadyWatermark[priority]}", "record.PendingKey{}"},
	{"TestA42", "shard/retention.go", "		if q == nil || atMs > s.now {\n", "		if q == nil || atMs >= 0 {\n"},
	{"TestA52", "internal/httpapi/metrics.go", "	TopQueues = 100\n", "	TopQueues = 100_000\n"},
	{"TestA53", "internal/httpapi/list.go", "	listMostRead  = 5000\n", "	listMostRead  = 5_000_000\n"},
	{"TestA22", "shard/lease.go", "	t.Losses++\n", "	t.Losses++\n	if t.IdempotencyKey == \"\" {\n		panic(\"a task without a key\")\n	}\n"},
	{"TestA24", "shard/lease.go", "	for _, ref := range m.Tasks {\n		e := s.leases.Holds(ref)\n		if e == nil ||", "	for _, ref := range m.Tasks[:1] {\n		e := s.leases.Holds(ref)\n		if e == nil ||"},
	{"TestA25Retries", "shard/delivery.go", "	if t.Attempts < t.MaxAttempts {\n", "	if t.Attempts < min(t.MaxAttempts, 3) {\n"},
	{"TestA25Replay", "shard/admin.go", "	t.Attempts, t.Releases, t.Losses,", "	t.Attempts, t.Releases, t.Losses = t.Attempts-t.Deliveries/2, 0, 0\n	_, _, _,"},
	{"TestU01WhatFailed", "internal/httpapi/kinds.go", "		Causes:       wire.OnlyDead(wire.DeadExhausted, wire.DeadReleased),\n", ""},
	{"TestU01WhatFailed", "shard/delivery.go", "		ends.to, ends.dead = wire.LocationDead, wire.DeadFailed\n", "		ends.to, ends.dead = wire.LocationDead, wire.DeadExhausted\n"},
	{"TestA26Retries", "shard/backoff.go", "	return rand.New(chance).Int64N(b.doubledMs(n) + 1)\n", "	return b.doubledMs(n)\n"},
	{"TestA26EqualJitter", "shard/backoff.go", "		return half + rand.New(chance).Int64N(half+1)\n", "		return rand.New(chance).Int64N(2*half + 1)\n"},
	{"TestA27", "shard/admin.go", "	if e != nil {\n		s.revoke(e, wire.RevokedCancelled)\n	}\n", ""},
	{"TestA28", "shard/grant.go", "q.freezes == 0 && !q.settings.Paused }", "q.freezes == 0 }"},
	{"TestA33", "internal/httpapi/enqueue.go", "	message.WantTask = true\n",
		"	if at, err := http.ParseTime(c.r.Header.Get(\"Date\")); err == nil && req.DelaySeconds > 0 {\n" +
			"		req.RunAtMs, req.DelaySeconds = at.UnixMilli()+req.DelaySeconds*1000, 0\n	}\n" +
			"	message, shardNo = a.enqueueMessage(c, req)\n	message.WantTask = true\n"},
	{"TestA30", "index/index.go", "if o == nil || atMs > nowMs {", "if o == nil || atMs > nowMs+900 {"},
	{"TestA31", "shard/shard.go", "if s.out.Taken == len(messages) && s.space", "if s.out.Taken == len(messages) && len(messages) > 0 && s.space"},
	{"TestA32", "shard/lease.go", "	for ; done < s.limits.Due; done++ {\n		d, ok", "	for ; done < 100 && s.now%10_000 < 5; done++ {\n		d, ok"},
	{"TestA43", "shard/grant.go", "func (s *Shard) grant(q *queue, sub *subscriber, t *record.Task) {\n",
		"var kept [][]byte\n\nfunc (s *Shard) grant(q *queue, sub *subscriber, t *record.Task) {\n" +
			"	defer func() { p, _ := s.span.PayloadOf(t); kept = append(kept, p) }()\n"},
	{"TestA44OddNames", "record/keys.go", "	return c == '.' || c == '_' || c == ':' || c == '-'\n", "	return c == '.' || c == '_' || c == ':' || c == '-' || c == '%'\n"},
	{"TestA44OddTenants", "record/queue.go", "	f.str(2, \"tenant\", &q.Tenant)\n", ""},
	{"TestA45", "wire/append.go", "	return append(dst, '\\\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0x0f])\n", "	return append(dst, c)\n"},
	{"TestA46", "wire/parse_request.go", "	case len(r.Result) > MaxResultBytes:\n", "	case len(r.Result) > 2*MaxResultBytes:\n"},
	{"TestA48KeysLive", "shard/transition.go", "		s.tellWatchers(t.ID)\n",
		"		s.tellWatchers(t.ID)\n		if t.IdempotencyKey != \"\" {\n			s.span.Batch().DeleteIdempotencyKey(t.Queue(), t.IdempotencyKey)\n		}\n"},
	{"TestA48KeysOf", "shard/retention.go", "			batch.DeleteIdempotencyKey(t.Queue(), t.IdempotencyKey)\n", ""},
	{"TestA49", "shard/enqueue.go", "		batch.PutIdempotencyKey(key, m.IdempotencyKey, t.ID)\n", ""},
	{"TestHistory", "record/history.go", "		lines = lines[over:]\n", "		lines = lines[:MaxHistory]\n"},
	{"TestU03Batch", "wire/parse_batch.go", "		o.checkMembers(enqueueShape.bits)\n", "		o.once(enqueueShape.bits)\n"},
	{"TestU03Session", "session/hello.go", "		r := c.begin(f.Ref, messageBytes)\n		r.task.TaskID = f.TaskID\n		c.refuse(r, f.Err)\n", "		c.closeSocket(CloseProtocol, f.Err.Sentence)\n"},
	{"TestU03Parameter", "internal/httpapi/query.go", "		if !slices.Contains(known, name) {\n", "		if false {\n"},
	{"TestU03Parameter", "internal/httpapi/call.go", "	if c.r.ContentLength != 0 && (v.method", "	if false && (v.method"},
	{"TestA54", "shard/delivery.go", "	if m.Counts() {\n", "	if t.Attempts++; m.Counts() {\n"},
	{"TestN01N03", "shard/delivery.go", "if m.Counts() {", "if !m.NotStarted {"},
	{"TestN01N03", "shard/delivery.go", "if m.Counts() {", "if !m.Stopping {"},
	{"TestA56", "shard/subscribers.go", "	if command == wire.AllCommands {", "	if true {"},
	{"TestA58", "session/list.go", "	case c.noTasks() != nil || c.profile.leaving:", "	case c.noTasks() != nil:"},
	{"TestA59", "shard/shard.go", "		expires = min(found.Lease.DeadlineMs, nowMs+resumeGraceMs)\n", "		expires = nowMs + 3_600_000\n"},
}

// clientMutants are those that a test in package client catches, where a time is
// the one of a bubble.
var clientMutants = []mutant{
	{"TestA26WaitsOf", "client/backoff.go", "	return delay/2 + rand.N(delay)\n", "	return rand.N(delay * 3 / 2)\n"},
	{"TestA26Workers", "client/backoff.go", "	return delay/2 + rand.N(delay)\n", "	return delay + 0*rand.N(delay)\n"},
	{"TestN03WorkerThat", "client/delivery.go", "firstRest<<min(l.unbegun, 16)", "firstRest<<min(l.unbegun, 0)"},
	{"TestN01Handler", "client/delivery.go", "		outcome.why.Stopping = true\n", "		outcome.why.Stopping = outcome.why.NotStarted\n"},
}

// programMutants are those that a test in cmd/codeq catches, where the programs
// of a worker are.
var programMutants = []mutant{
	{"TestU10EveryErrorOfTheClient", "cmd/codeq/exit.go", "errors.Is(err, client.ErrOutcomeUnknown), ", ""},
	{"TestWhoStopsWaiting", "cmd/codeq/app.go", "cancel(&exitError{fmt.Errorf(\"stopped by %s\", s), exitFailed})", "cancel(fmt.Errorf(\"stopped by %s\", s))"},
	{"TestU10FlagsThatMeanNothing", "cmd/codeq/help.go", "		if slices.Contains(strings.Split(n.Tag.Get(\"without\"), \",\"), flag.Name) {\n", "		if false {\n"},
	{"TestU10ShellsComplete", "cmd/codeq/completion.go", "		*\" --\") at=-- ;;\n", ""},
	{"TestN01Death", "cmd/codeq/shell.go", "	case r.cause == causeHard, r.told && r.interrupted():\n", "	case r.cause == causeHard:\n"},
	{"TestProgramIsToldToEnd", "cmd/codeq/shell.go", "ExitStatus() == 0 && (!r.evicted() || objectOf(s.stdout.data) != nil):", "ExitStatus() == 0:"},
	{"TestProgramIsToldToEnd", "cmd/codeq/shell.go", "	case r.cause == causeLost:\n", "	case false:\n"},
	{"TestLeavingsOfAKilledWorker", "cmd/codeq/leavings.go", "	sweepLeavings()\n", ""},
	{"TestLeavingsOfAKilledWorker", "cmd/codeq/leavings.go", "	err = syscall.Flock(int(f.Fd()), how)\n	for", "	for"},
	{"TestAnArtifactThatNeverFits", "cmd/codeq/leavings.go", "(refusal.Code == wire.CodeTooLarge || ", "("},
	{"TestAnArtifactThatNeverFits", "cmd/codeq/leavings.go", "refusal.Code == wire.CodeTooLarge || refusal.Code == wire.CodeInvalidArgument)", "refusal.Code == wire.CodeTooLarge)"},
	{"TestN03ProgramThat", "cmd/codeq/program.go", "	if !p.begun.Load() && lasting(err) {\n", "	if lasting(err) {\n"},
	{"TestN04RunThat", "cmd/codeq/shell.go", "	case r.cause == causeTimeout:\n", "	case r.cause == causeTimeout && r.status != 0:\n"},
	{"TestN13HangupDrains", "cmd/codeq/work.go", "		signal.Notify(hangups, syscall.SIGHUP)\n", ""},
	{"TestN13SecondStopEnds", "cmd/codeq/work.go", "		case <-hangups:\n		case <-quits:\n			first = time.Time{}\n", "		case <-quits:\n			first = time.Time{}\n"},
	{"TestN13HangupStops", "cmd/codeq/serve.go", "(a.inIsTerminal || a.errIsTerminal)", "a.inIsTerminal"},
	{"TestN13Terminal", "cmd/codeq/main.go", "		errIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),\n", ""},
	{"TestN02StoppedClaim", "cmd/codeq/claim.go", "context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)", "context.WithTimeout(ctx, giveBackWithin)"},
	{"TestN23CountIsTold", "cmd/codeq/bulktasks.go", "context.WithCancelCause(context.WithoutCancel(ctx))", "context.WithCancelCause(ctx)"},
	{"TestX5KilledKeeper", "cmd/codeq/shell.go", "syscall.Kill(-s.group, syscall.SIGKILL)", "syscall.Kill(s.group, syscall.SIGKILL)"},
	{"TestProgramThatIgnores", "internal/keeper/child.go", "syscall.Kill(-c.group, s)", "syscall.Kill(c.group, s)"},
	{"TestBackupIsDurable", "cmd/codeq/backup.go", "	return b.syncDirectory(filepath.Dir(filepath.Clean(dir)))\n", "	return nil\n"},
	{"TestEverySetting", "cmd/codeq/serve.go", "		RetentionFor: s.Retention, DLQRetentionFor: s.DLQRetention,\n", "		RetentionFor: s.DLQRetention, DLQRetentionFor: s.Retention,\n"},
	{"TestFileWaitsOnce", "cmd/codeq/answers.go", "max(0, time.Until(until))", "max(waitFor, time.Until(until))"},
}

// serverMutants are those that a test in package server catches, where the wall
// clock can be stepped.
var serverMutants = []mutant{
	{"TestA33AStep", "internal/server/clock.go", "	most := passed / driftDivisor\n", "	most := max(passed/driftDivisor, int64(time.Hour))\n"},
	{"TestShutdownClosesTheStore", "internal/server/server.go", "	p.conns.wait()\n", ""},
	{"TestEveryOption", "internal/server/parts.go", ", OutboxBytes: budget.outboxesBytes", ""},
	{"TestEveryOption", "internal/server/parts.go", ", RequireLeaseToken: s.o.RequireLeaseToken", ""},
	{"TestEveryOption", "internal/server/parts.go", ", AnswerBytes: splitMemory(s.o.MemoryBytes).outboxesBytes", ""},
	{"TestNoAcknowledgedFile", "internal/artifact/dir.go", "	if err == io.EOF {\n		err = f.Sync()\n	}\n", "	if err == io.EOF {\n		err = nil\n	}\n"},
	{"TestNoAcknowledgedFile", "internal/artifact/dir.go", "	for _, at := range []string{dir, d.fs.PathDir(dir), d.path} {\n", "	for _, at := range []string{d.fs.PathDir(dir), d.path} {\n"},
	{"TestNoAcknowledgedFile", "internal/artifact/keeper.go", "			k.look(id, k.orphans)\n			return !k.stopped()\n", "			return !k.stopped()\n"},
	{"TestNoAcknowledgedFile", "shard/file.go", "	e.PutAgain = true\n	s.span.Batch().PutLease(e.Task.Queue(), e.Task.ID, &e.Lease)\n", ""},
	{"TestArtifactsAreUploaded", "shard/transition.go", "	e.Files = t.Files.Begun > 0 && (ends || m.to == removed)\n", "	e.Files = t.Files.Begun > 0 && ends\n"},
	{"TestArtifactsAreUploaded", "shard/retention.go", "e.HasKey || e.Labelled || e.HasFiles {", "e.HasKey || e.Labelled {"},
	{"TestArtifactsAreUploaded", "internal/httpapi/artifacts.go", " || found.SizeBytes == 0 || ", " || "},
	{"TestArtifactsAreUploaded", "internal/httpapi/artifacts.go", "	if c.r.Method != http.MethodGet || found", "	if found"},
	{"TestWhoAsksForAFile", "internal/httpapi/artifacts.go", " && !isConditional(c.r.Header) {", " {"},
	{"TestWhoAsksForAFile", "internal/artifact/s3.go", ", ResponseContentDisposition: &disposition,\n", ",\n"},
	{"TestTheFilesOfATenant", "internal/httpapi/artifacts.go", "	defer room.GiveBack() // from then on the shard counts the file\n", ""},
	{"TestTheFilesOfATenant", "internal/httpapi/artifacts.go", "	if c.r.ContentLength < 0 {\n		from", "	if false {\n		from"},
	{"TestTheFilesOfATenant", "internal/httpapi/contents.go", "		room.GiveBack() // the shard counts the files of a result that it has taken\n", ""},
	{"TestTheFilesOfATenant", "internal/limit/table.go", "		t.files.Add(-freed.FileBytes)\n", ""},
	{"TestTheFilesOfATenant", "shard/shard.go", "			q.tenant.fileBytes += found.Counters.FileBytes\n", ""},
	{"TestTheFilesOfATenant", "shard/pending.go", "		t.backlog.HoldFiles(t.fileBytes)\n", ""},
	{"TestTheFilesOfATenant", "shard/file.go", "		t.backlog.HoldFiles(bytes)\n", ""},
	{"TestTheFilesOfATenant", "shard/file.go", "		t.freed.FileBytes -= bytes\n", ""},
	{"TestArtifactsAreUploaded", "internal/httpapi/artifacts.go", "	h.Set(\"Content-Type\", artifact.ContentType)\n", "	h.Set(\"Content-Type\", found.ContentType)\n"},
	{"TestUploadsAreRefused", "internal/httpapi/artifacts.go", "	body.from = http.MaxBytesReader(c.w, c.r.Body, a.o.Files.MaxBytes)\n", ""},
	{"TestUploadsAreRefused", "internal/httpapi/contents.go", "			if refused && f.File != \"\" {\n", "			if false {\n"},
	{"TestNamesOfArtifactsLeadNowhere", "wire/artifact.go", "part == \"\" || part == \".\" || part == \"..\"", "part == \"\" || part == \".\""},
	{"TestA48KeysGo", "internal/server/clock.go", "	most := passed / driftDivisor\n", "	most := max(passed/driftDivisor, 2*int64(time.Hour))\n"},
}

// coreMutants are those that a test in package shard catches.
var coreMutants = []mutant{
	{"TestEachOfManySubscribersHasItsTurn", "shard/subscribers.go", "		subs.at = (subs.at + 1) % len(subs.open)\n", ""},
	{"TestScripts/files", "shard/transition.go", "		t.Files.Listed = \"\"\n", ""},
	{"TestScripts/files", "shard/transition.go", "	t.EndedAtMs, t.Files.Listed = s.now, \"\"\n", "	t.EndedAtMs = s.now\n"},
	{"TestScripts/files", "shard/file.go", "		bytes = sizeOf(m.result.Artifacts)\n", ""},
	{"TestScripts/files", "shard/file.go", "	s.countFiles(s.queueOf(e.Task.Queue()), files, sizeOf(list))\n", ""},
	{"TestScripts/files", "shard/file.go", "		q.index.AddFileBytes(more)\n", ""},
	{"TestScripts/files", "shard/grant.go", ", Files: record.Files{Begun: t.Files.Begun},\n", ",\n"},
	{"TestScripts/claim_turn", "shard/subscribers.go", "&subscriber{consumer: consumer, lastGrantNo: s.grantNo}", "&subscriber{consumer: consumer}"},
	{"TestScripts/limits", "shard/admin.go", "	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}\n", "	t.Attempts, t.Losses, t.ResultToken = 0, 0, wire.Token{}\n"},
	{"TestScripts/lease", "shard/admin.go", "	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}\n", "	t.Attempts, t.Releases, t.ResultToken = 0, 0, wire.Token{}\n"},
	{"TestScripts/failed", "shard/admin.go", "	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}\n", "	t.Attempts, t.Releases, t.Losses = 0, 0, 0\n"},
	{"TestScripts/turn_kept", "shard/grant.go", "			granted++\n			s.turns.end()\n		}\n", "			granted++\n		}\n		s.turns.end()\n"},
	{"TestScripts/suspect_beside", "shard/suspect.go", "return !sub.ownsWindow && !sub.consumer.OverHTTP", "return !sub.consumer.OverHTTP"},
	{"TestScripts/limits", "shard/cleanup.go", "w.over = w.done == len(w.Queues)\n", "w.over = w.done == len(w.Queues) || left == 0\n"},
	{"TestScripts/report", "shard/report.go", "	case e.SavedAtMs == 0 || s.now >= e.SavedAtMs+saveProgressForMs:\n", "	case true:\n"},
	{"TestScripts/report", "shard/report.go", "		e.SaveAtMs = s.now + saveProgressForMs\n", ""},
	{"TestScripts/report", "shard/report.go", "e := s.deliveryOrRefuse(&m.Holder)", "_, e := s.find(m.TaskID, m.Tenant)"},
	{"TestScripts/report", "shard/report.go", "	if m.Progress != nil || !e.Lease.Printed {\n", "	{\n"},
	{"TestScripts/report", "shard/report.go", "; s.leases.Get(e.Task.ID) == e {", "; true {"},
	{"TestScripts/report", "shard/report.go", "e.SavedAtMs, e.SaveAtMs, e.PutAgain = s.now, 0, true", "e.SavedAtMs, e.SaveAtMs = s.now, 0"},
	{"TestScripts/report", "shard/transition.go", "	t.Progress, t.Printed = cmp.Or(e.Lease.Progress, t.Progress), t.Printed || e.Lease.Printed\n", ""},
	{"TestScripts/report", "shard/shard.go", "	if at := s.nextSaveMs(); at != 0 && (next == 0 || at < next) {\n", "	if at := s.nextSaveMs(); at < 0 {\n"},
}

// shellMutants are those that a test in package shardactor catches.
var shellMutants = []mutant{
	{"TestU02QueuesOfAllShards", "internal/credit/window.go", "	behind := bits.TrailingZeros32(bits.RotateLeft32(waiting, -(last + 1)))\n	return (last + 1 + behind) % MaxShards\n", "	return bits.TrailingZeros32(waiting)\n"},
	{"TestU02QueuesOfAllShards", "internal/credit/window.go", "w.row.Load() < w.ready[last].Load()", "false"},
	{"TestU02QueuesOfAllShards", "shard/grant.go", "			granted++\n			s.turns.end()\n		}\n", "			granted++\n		}\n		s.turns.end()\n"},
	{"TestU02QueuesOfAllShards", "shard/grant.go", "	sub.moveBehind(q.subscribers)\n", ""},
}

// apiMutants are those that a test in package httpapi catches, where one shard
// can be made busy and the news of a sync held.
var apiMutants = []mutant{
	{"TestAClaimPassesOverABusyShard", "internal/httpapi/claim.go", "			refusal = err\n			continue\n", "			refusal = err\n			break\n"},
	{"TestU02QueuesOfAllShards", "internal/httpapi/claim_turns.go", "	if began == t.shard {\n", "	if false {\n"},
	{"TestAClaimPassesOverABusyShard", "internal/httpapi/claim.go", "			refusal = err\n			continue\n", "			continue\n"},
	{"TestAnswersThatAreNotTaken", "internal/httpapi/call.go", "	defer a.hold(c, 0)\n", ""},
	{"TestAClaimThatWaitedTakesAllThatIsOnItsWay", "internal/httpapi/claim.go", "return len(b.granted) == k.consumer.InFlight() })", "return len(b.granted) > 0 || k.consumer.InFlight() == 0 })"},
	{"TestBulkWorkLeavesNothingBehindThatABusyShardRefused", "internal/httpapi/bulk.go", "worked(); err != nil || w.refuse != nil {", "worked(); err != nil {"},
}

// sessionMutants are those that a test in package session catches, where what a
// session holds can be said.
var sessionMutants = []mutant{
	{"TestWhoReadsSlowlyIsNotFurthestBehind", "session/budget.go", "h.bytes == 0 || bytes < 0", "h.bytes == 0"},
	{"TestWhoReadsSlowlyIsNotFurthestBehind", "session/budget.go", "		r.relieving.Store(false)\n	}\n}", "	}\n}"},
	{"TestWhoReadsSlowlyIsNotFurthestBehind", "session/budget.go", "h.bytes, h.over, h.relieved = 0, true, false", "h.bytes, h.relieved = 0, false"},
}

// TestMutantsHaveTheirPlaces fails as soon as the code moves away under a
// fault: running them all takes an hour, and nobody would know before.
func TestMutantsHaveTheirPlaces(t *testing.T) {
	seen := map[mutant]bool{}
	for _, m := range slices.Concat(mutants, clientMutants, programMutants, serverMutants, coreMutants, shellMutants, apiMutants, sessionMutants) {
		t.Run(m.test, func(t *testing.T) { m.overlay(t) })
		if seen[m] {
			t.Errorf("%s is in the lists twice", m.test)
		}
		seen[m] = true
	}
}

// overlay writes the changed file and the list that names it.
func (m mutant) overlay(t *testing.T) (list string) {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("the code has moved on: %q is in %s %d times, not once", m.old, m.file, n)
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	list = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}
