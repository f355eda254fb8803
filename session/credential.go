package session

import (
	"fmt"

	"codeq/internal/auth"
	"codeq/shardactor"
	"codeq/wire"
)

// scopeOf is the scope that a frame needs, "" for none.
func scopeOf(f wire.ClientFrame) string {
	switch f.(type) {
	case *wire.Hello, *wire.Drain, *wire.Unknown:
		return ""
	case *wire.Enqueue, *wire.Cancel:
		return auth.ScopeProduce
	case *wire.Heartbeat, *wire.Progress, *wire.Output:
		return auth.ScopeHeartbeat
	case *wire.Result:
		return auth.ScopeResult
	case *wire.Nack:
		return auth.ScopeNack
	case *wire.Abandon, *wire.Release:
		return auth.ScopeAbandon
	}
	return auth.ScopeSubscribe
}

// permitted reports whether the credential has the scope for a frame. If not, it refuses the
// frame, which then reaches no shard.
func (c *Conversation) permitted(f wire.ClientFrame) bool {
	scope := scopeOf(f)
	if scope == "" {
		return true
	}
	refusal := c.principal.CheckScope(scope)
	if refusal == nil {
		return true
	}
	r := c.begin(f.Reference(), messageBytes)
	switch f := f.(type) {
	case *wire.Cancel:
		r.task.TaskID = f.TaskID
	case wire.DeliveryFrame:
		r.task = f.Delivery()
	}
	c.refuse(r, refusal)
	return false
}

// renewed replaces the credential of the session.
func (c *Conversation) renewed(f *wire.Hello, p *auth.Principal) {
	r := c.begin(f.Ref, messageBytes)
	if refusal := c.checkRenewal(p); refusal != nil {
		c.refuse(r, refusal)
		return
	}
	c.principal = p
	c.clock.renewed(p.ExpiresAtMs)
	c.succeed(r, &wire.OK{})
}

// checkRenewal refuses a credential that does not allow the tasks that the session takes.
func (c *Conversation) checkRenewal(p *auth.Principal) *wire.Error {
	if p.Tenant != c.principal.Tenant || p.Subject != c.principal.Subject {
		return wire.Refuse(wire.CodeForbidden,
			"the token belongs to another tenant or subject than this session; open another session for it")
	}
	if c.subscribed == nil {
		return nil
	}
	if !p.Has(auth.ScopeSubscribe) {
		return wire.Refuse(wire.CodeForbidden,
			"this session takes tasks and the token lacks the scope "+auth.ScopeSubscribe+"; open another session for it")
	}
	for _, command := range c.subscribed {
		if !p.MayUse(command) {
			return wire.Refuse(wire.CodeForbidden, fmt.Sprintf(
				"this session takes tasks of command %s and the token is not good for it; open another session for it", command))
		}
	}
	return nil
}

// rechecked ends the session if its credential was revoked or has other rights now. The rights
// of earlier frames were checked by the old credential; the client learns of the change by
// connecting again.
func (c *Conversation) rechecked(now *auth.Principal) {
	switch {
	case c.principal == nil:
	case now == nil:
		c.closeSocket(CloseCredential, "the credential was revoked")
	case !now.SameRights(c.principal):
		c.closeSocket(CloseCredential, "the rights of the credential have changed; connect again")
	default:
		c.principal = now
		c.clock.renewed(now.ExpiresAtMs)
	}
}

// Principal is the principal of the session, nil before the first good hello.
func (c *Conversation) Principal() *auth.Principal { return c.principal }

// authenticate checks the credential of the hello that waits. s.mu is held, but not during the
// call of the authenticator, which can take long.
func (s *session) authenticate() {
	hello := s.talk.Asking()
	principal, refusal := s.header, (*wire.Error)(nil)
	if hello.Token != "" || principal == nil {
		s.mu.Unlock()
		if principal, refusal = s.registry.o.Auth.Authenticate(s.ctx, hello.Token); refusal == nil {
			principal, refusal = principal.For(s.tenant)
		}
		s.mu.Lock()
	}
	switch {
	case s.talk.Over():
	case refusal != nil:
		s.report(nil, refusal)
		s.step(&denied{Err: refusal})
	case s.talk.Open():
		if refusal := s.talk.checkRenewal(principal); refusal != nil {
			s.report(principal, refusal)
		}
		s.step(&Admitted{Principal: principal})
	default:
		s.admit(hello, principal)
	}
	// A credential that was revoked meanwhile was not found in this session.
	s.recheck()
}

// report reports a hello that was refused because of its client; who is nil if its credential is
// not good.
func (s *session) report(who *auth.Principal, refusal *wire.Error) {
	if refused := s.registry.o.Refused; refused != nil && auth.AboutWho(refusal) {
		refused(auth.Attempt{Remote: s.socket.RemoteAddr().String(), What: "hello", Who: who, Refusal: refusal})
	}
}

// admit opens the session, or resumes one on this new socket. s.mu is held, so a third socket
// of the same session, which replaces this one, waits until the shards have been asked.
func (s *session) admit(hello *wire.Hello, principal *auth.Principal) {
	id, resumed := s.registry.keys.session(hello.Resume, principal)
	if resumed {
		s.registry.replace(s, id)
	}
	if refusal := s.registry.admit(s, principal); refusal != nil {
		s.step(&denied{Err: refusal})
		return
	}
	if !resumed {
		var err error
		if id, err = s.registry.drawID(s); err != nil {
			s.registry.o.Log.Error().Err(err).Msg("session: no id for a new session")
			s.step(&denied{Err: wire.Refuse(wire.CodeInternal, "the server could not open a session; try again")})
			return
		}
	}
	s.consumer = s.registry.o.Engine.NewConsumer(shardactor.ConsumerOptions{
		ID: id, Tenant: principal.Tenant, Subject: principal.Subject, WorkerID: hello.WorkerID, Sink: s,
	})
	s.step(&Admitted{
		Principal: principal, ID: id, Consumer: s.consumer.Consumer, Key: s.registry.keys.key(id, principal), Resumed: resumed,
	})
}

// recheck steps the conversation if its credential stands for another principal now. s.mu is
// held.
func (s *session) recheck() {
	p := s.talk.Principal()
	if p == nil {
		return
	}
	if now := p.Current(); now != p {
		s.step(&recheck{Principal: now})
	}
}

// Recheck ends the sessions whose credential was revoked or has other rights now. The caller
// calls it when the tokens have changed. It does not block. Any goroutine.
func (r *Registry) Recheck() {
	for _, s := range r.running() {
		s.mu.Lock()
		s.recheck()
		s.wakeWriter()
		s.mu.Unlock()
	}
}
