package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"codeq/internal/auth"
	"codeq/shard"
	"codeq/wire"
)

// greeting is a welcome that waits for shards.
type greeting struct {
	welcome *wire.Welcome
	waits   int
}

// lose takes a delivery out again that was lost before anybody was told that
// the session still has it.
func (g *greeting) lose(ref wire.TaskRef) {
	g.welcome.Held = slices.DeleteFunc(g.welcome.Held, func(held wire.TaskRef) bool { return held == ref })
}

// resumes asks every shard what the session has in hand.
func (c *Conversation) resumes(welcome *wire.Welcome) {
	c.greeting = &greeting{welcome: welcome, waits: c.facts.Router.Shards()}
	c.out.Resume = &shard.Asker{Sink: c.facts.Sink}
}

// resumed takes the answer of one shard. The last one lets the welcome out
// and the frames go on that came behind hello.
func (c *Conversation) resumed(e *shard.Resumed) {
	g := c.greeting
	for _, ref := range e.Held {
		c.tasks.hold(ref)
		g.welcome.Held = append(g.welcome.Held, ref)
	}
	g.waits--
	if g.waits > 0 {
		return
	}
	c.greeting = nil
	c.out.Hold = len(g.welcome.Held)
	c.send(g.welcome)
	c.proceed()
}

// keyring makes the keys by which sessions are resumed, and knows its own. A
// key is the session's id and a seal over id, tenant and subject, which only
// the data directory can set: so it is good after a restart, good for nobody
// else, and nothing has to be remembered. A keyring without a secret makes none.
type keyring struct {
	secret []byte
}

const keySeparator = "."

// key is the key of a session of a principal.
func (k keyring) key(id wire.SessionID, p *auth.Principal) string {
	if len(k.secret) == 0 {
		return ""
	}
	return id.String() + keySeparator + hex.EncodeToString(k.seal(id, p))
}

// session is the session that a key is for, if it is one of ours and was made
// for the same tenant and subject.
func (k keyring) session(key string, p *auth.Principal) (wire.SessionID, bool) {
	text, _, _ := strings.Cut(key, keySeparator)
	id, ok := wire.ParseSessionID(text)
	if !ok || len(k.secret) == 0 {
		return wire.SessionID{}, false
	}
	if !hmac.Equal([]byte(key), []byte(k.key(id, p))) {
		return wire.SessionID{}, false
	}
	return id, true
}

func (k keyring) seal(id wire.SessionID, p *auth.Principal) []byte {
	sealed := id.AppendTo(nil)
	for _, part := range []string{p.Tenant, p.Subject} {
		sealed = binary.AppendUvarint(sealed, uint64(len(part)))
		sealed = append(sealed, part...)
	}
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(sealed)
	return mac.Sum(nil)
}
