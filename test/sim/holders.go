package sim

import (
	"slices"

	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// claimant is somebody who asked a shard once and has no answer yet.
type claimant struct {
	consumer *consumer
	asked    *shard.Claim
}

// claim notes who asks.
func (m *model) claim(a *shard.Claim) {
	s := m.consumers[a.Consumer]
	if !a.CountOnly {
		s.subscribed[m.at.Shard] = subscription{true, a.Commands, a.LeaseForMs}
	}
	m.claims[m.at.Shard] = append(m.claims[m.at.Shard], claimant{s, a})
}

// answerClaims wants every claim answered behind the grants, unless the shard
// has more to hand out at once; and no task left that it could have had.
func (m *model) answerClaims() {
	shardNo := m.at.Shard
	var staying []claimant
	for _, c := range m.claims[shardNo] {
		if !m.isAnswered(c) {
			if !m.at.Outcome.Again || c.asked.CountOnly {
				violate("a claim is answered at once", "%s of %s", c.consumer.WorkerID, c.consumer.Tenant)
			}
			staying = append(staying, c)
			continue
		}
		said := m.at.Outcome.Effects[m.at.effect].Effect.(*shard.Claimed)
		m.at.effect++
		if is, may := m.readyFor(c.consumer.Tenant, c.asked.Commands); is && said.Ready == 0 || said.Ready > 0 && !may {
			violate("a claim is told what is ready", "%s of %s asked for %v and was told of %d queues", c.consumer.WorkerID, c.consumer.Tenant, c.asked.Commands, said.Ready)
		}
		if c.asked.CountOnly {
			continue
		}
		if t := m.couldHave(c.consumer, shardNo); t != nil && m.at.Space < store.NoGrant {
			violate("a claim gets what there is", "%s has %d of %d and was not given %v", c.consumer.WorkerID, len(c.consumer.out), c.consumer.window, t.id)
		}
		c.consumer.subscribed[shardNo].on = false
	}
	m.claims[shardNo] = staying
}

func (m *model) isAnswered(c claimant) bool {
	if m.at.effect >= len(m.at.Outcome.Effects) {
		return false
	}
	next := m.at.Outcome.Effects[m.at.effect]
	_, ok := next.Effect.(*shard.Claimed)
	return ok && next.Sink == c.asked.Sink
}

// readyFor says whether the shard has a task that is handed out, of some commands of a
// tenant, and whether it may have one: a limit lets it go or not.
func (m *model) readyFor(tenant string, asked []string) (is, may bool) {
	for _, command := range commands {
		t := m.head(m.at.Shard, tenant, command)
		if t == nil || !slices.Contains(asked, command) && !slices.Contains(asked, wire.AllCommands) {
			continue
		}
		is = is || !m.holdsBack(t)
		may = may || !m.settings.of(t).Paused && m.frozen[t.shard][t.queue()] == 0
	}
	return is, may
}

// couldHave is a ready task of a shard for which a consumer has a free credit.
func (m *model) couldHave(s *consumer, shard int) *task {
	if len(s.out) >= s.window || s.untaken >= s.bound || s.alone {
		return nil
	}
	for _, command := range commands {
		if t := m.head(shard, s.Tenant, command); t != nil && s.takes(shard, command) && !m.holdsBack(t) && !t.isPast(m.at.NowMs) {
			return t
		}
	}
	return nil
}

// undelivered is a claim whose client was gone before the first byte.
func (m *model) undelivered(a *shard.Undelivered) {
	for _, ref := range a.Tasks {
		t := m.delivery(ref)
		if t == nil || !t.madeTo(a.Consumer) {
			continue
		}
		m.touch(t)
		t.confirmed = false
		if m.at.Space >= store.OnlyDelete {
			t.lapseMs = m.at.NowMs
			continue
		}
		m.takeBack(t)
	}
}

// madeTo says that the delivery was made to that consumer, and that it carries it still.
func (t *task) madeTo(s *shard.Consumer) bool {
	if s.OverHTTP {
		return t.overHTTP && t.session.IsZero()
	}
	return !t.overHTTP && t.session == s.ID
}

// mayAct says whether a call of the right subject is about the newest delivery
// of a task: by its token, or without any if the delivery was made over HTTP, to
// the worker that the call names, if it names one.
func (t *task) mayAct(o shard.Owner, token wire.Token) bool {
	switch {
	case !t.isOf(o.Subject, token) || t.deliveries == 0:
		return false
	case !token.IsZero():
		return t.token == token
	}
	return t.overHTTP && (o.WorkerID == "" || o.WorkerID == t.worker)
}

// isOf says that the newest delivery may be that of a subject: whoever has the token of one that
// went to a target may act on it.
func (t *task) isOf(subject string, token wire.Token) bool {
	return t.subject == subject || t.subject == shard.OwnSubject && !token.IsZero()
}

// speaker is who speaks of the newest delivery from outside.
func (t *task) speaker() string {
	if t.subject == shard.OwnSubject {
		return subjects[0]
	}
	return t.subject
}

// prolong is a heartbeat over HTTP.
func (m *model) prolong(a *shard.Extend) {
	t := m.held(&a.Holder)
	if t == nil {
		return
	}
	m.confirm(t)
	if t.gone {
		t.session = wire.SessionID{}
	}
	length := a.ExtendForMs
	if length == 0 {
		length = t.leaseMs
	}
	t.ackedMs = max(t.ackedMs, m.at.NowMs+length)
	t.lapseMs, t.gone = t.until(t.ackedMs), false
	e := expect[*shard.Extended](m, a.Asker)
	leaseMs, runMs := t.promised()
	checkPromise(e, leaseMs, runMs, t.restored)
}

func (m *model) heartbeat(a *shard.Heartbeat) {
	if m.at.Space >= store.OnlyDelete {
		m.refused(a.Asker, wire.CodeStorageFull)
		return
	}
	var earliest, runMs int64
	restored, lost := false, 0
	for _, t := range m.beaten(a) {
		if t == nil {
			lost++
			continue
		}
		m.extend(a, t)
		restored = restored || t.restored
		lease, run := t.promised()
		if earliest == 0 || lease < earliest {
			earliest = lease
		}
		if run != 0 && (runMs == 0 || run < runMs) {
			runMs = run
		}
	}
	e := expect[*shard.Extended](m, a.Asker)
	if a.Sink == nil {
		return
	}
	if len(e.Lost) != lost {
		violate("a heartbeat names what is lost", "lost %d, said %v", lost, e.Lost)
	}
	checkPromise(e, earliest, runMs, restored)
}

// beaten are the tasks a heartbeat speaks of, nil for those it has lost.
func (m *model) beaten(a *shard.Heartbeat) (tasks []*task) {
	if a.Tasks == nil {
		for _, t := range m.leased[m.at.Shard] {
			if t.session == a.Consumer.ID {
				tasks = append(tasks, t)
			}
		}
		return tasks
	}
	for _, ref := range a.Tasks {
		t := m.delivery(ref)
		if t != nil && (t.tenant != a.Tenant || t.subject != a.Subject) {
			t = nil
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func (m *model) extend(a *shard.Heartbeat, t *task) {
	m.touch(t)
	m.carried(a, t)
	if a.Tasks != nil {
		// Who says "all" names none that may still be on its way.
		m.confirm(t)
	}
	length := a.ExtendForMs
	if length == 0 {
		length = t.leaseMs
	}
	t.ackedMs = max(t.ackedMs, m.at.NowMs+length)
	t.lapseMs, t.gone = t.until(t.ackedMs), false
}
