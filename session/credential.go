package session

import (
	"fmt"

	"codeq/internal/auth"
	"codeq/shardactor"
	"codeq/wire"
)

// permitted reports whether the credential is good for a frame's kind. If not,
// the frame is refused; it comes to no shard, whatever task it names.
func (c *Conversation) permitted(f wire.ClientFrame) bool {
	scope := auth.ScopeWorker
	switch f.(type) {
	case *wire.Hello, *wire.Drain, *wire.Unknown:
		return true // they ask for nothing that needs a scope
	case *wire.Enqueue, *wire.Cancel:
		scope = auth.ScopeProducer
	}
	if c.principal.Has(scope) {
		return true
	}
	r := c.begin(f.Reference(), messageBytes)
	switch f := f.(type) {
	case *wire.Cancel:
		r.task.TaskID = f.TaskID
	case wire.DeliveryFrame:
		r.task = f.Delivery()
	}
	c.refuse(r, wire.Refuse(wire.CodeForbidden, "this credential lacks the scope "+scope))
	return false
}

// renewed takes another credential in place of the one that the session has.
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

// checkRenewal keeps a session from going on with tasks that its new
// credential is not good for.
func (c *Conversation) checkRenewal(p *auth.Principal) *wire.Error {
	if p.Tenant != c.principal.Tenant || p.Subject != c.principal.Subject {
		return wire.Refuse(wire.CodeForbidden,
			"the token belongs to another tenant or subject than this session; open another session for it")
	}
	if c.subscribed == nil {
		return nil
	}
	if !p.Has(auth.ScopeWorker) {
		return wire.Refuse(wire.CodeForbidden,
			"this session takes tasks and the token lacks the scope worker; open another session for it")
	}
	for _, command := range c.subscribed {
		if p.Commands != nil && !p.MayUse(command) {
			return wire.Refuse(wire.CodeForbidden, fmt.Sprintf(
				"this session takes tasks of command %s and the token is not good for it; open another session for it", command))
		}
	}
	return nil
}

// standing looks at what has become of the credential. A session does not go
// on with other rights: what it may do was decided frame by frame, and its
// client learns of the change by connecting again.
func (c *Conversation) standing(now *auth.Principal) {
	switch {
	case c.principal == nil:
	case now == nil:
		c.end(CloseCredential, "the credential was taken back")
	case !now.SameRights(c.principal):
		c.end(CloseCredential, "the rights of the credential have changed; connect again")
	default:
		c.principal = now
		c.clock.renewed(now.ExpiresAtMs)
	}
}

// Principal is who speaks, nil before the first good hello.
func (c *Conversation) Principal() *auth.Principal { return c.principal }

// authenticate judges the credential of the hello that waits. s.mu is held,
// but not while the authenticator is asked, which may take its time.
func (s *session) authenticate() {
	hello := s.talk.Asking()
	principal, refusal := s.header, (*wire.Error)(nil)
	if hello.Token != "" || principal == nil {
		s.mu.Unlock()
		principal, refusal = s.registry.o.Auth.Authenticate(s.ctx, hello.Token)
		s.mu.Lock()
	}
	switch {
	case s.talk.Over():
	case refusal != nil:
		s.registry.report(s.socket.RemoteAddr().String(), refusal)
		s.step(&Denied{Err: refusal})
	case s.talk.Open():
		s.step(&Admitted{Principal: principal})
	default:
		s.admit(hello, principal)
	}
	// Whoever took the credential back meanwhile did not find it here yet.
	s.judgeAgain()
}

// report reports a hello that was refused because of its client.
func (r *Registry) report(remote string, refusal *wire.Error) {
	if r.o.Refused != nil && auth.AboutWho(refusal) {
		r.o.Refused(auth.Attempt{Remote: remote, What: "hello", Refusal: refusal})
	}
}

// admit seats the session, or the new socket of one that was here before. s.mu
// is held; so a third socket of the same session, which would replace this one,
// waits until its shards have been asked.
func (s *session) admit(hello *wire.Hello, principal *auth.Principal) {
	id, resumed := s.registry.keys.session(hello.Resume, principal)
	if resumed {
		s.registry.replace(s, id)
	}
	if !s.registry.admit(s) {
		s.step(&Denied{Err: &wire.Error{
			Code: wire.CodeOverloaded, RetryAfterSeconds: retryAfterSeconds,
			Sentence: "the server has as many sessions open as it takes; try again later, or at another server",
		}})
		return
	}
	if !resumed {
		var err error
		if id, err = s.registry.drawID(s); err != nil {
			s.registry.o.Log.Error().Err(err).Msg("session: no id for a new session")
			s.step(&Denied{Err: wire.Refuse(wire.CodeInternal, "the server could not open a session; try again")})
			return
		}
	}
	s.seat = s.registry.o.Engine.NewSeat(shardactor.SeatOptions{
		ID: id, Tenant: principal.Tenant, Subject: principal.Subject, WorkerID: hello.WorkerID, Sink: s,
	})
	s.step(&Admitted{
		Principal: principal, ID: id, Seat: s.seat.Seat, Key: s.registry.keys.key(id, principal), Resumed: resumed,
	})
}

// judgeAgain tells the conversation if its credential stands for something
// else by now. s.mu is held.
func (s *session) judgeAgain() {
	p := s.talk.Principal()
	if p == nil {
		return
	}
	if now := p.Current(); now != p {
		s.step(&Standing{Principal: now})
	}
}

// Recheck ends the sessions whose credential was taken back or has other
// rights than before. Call it when that may be so; it does not block.
func (r *Registry) Recheck() {
	for _, s := range r.running() {
		s.mu.Lock()
		s.judgeAgain()
		s.mu.Unlock()
		s.wakeWriter()
	}
}
