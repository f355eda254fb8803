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

// greeting is a welcome that waits for the answers of shards.
type greeting struct {
	welcome *wire.Welcome
	waits   int
}

// remove removes a delivery that the session lost before the welcome was sent.
func (g *greeting) remove(ref wire.TaskRef) {
	g.welcome.Held = slices.DeleteFunc(g.welcome.Held, func(held wire.TaskRef) bool { return held == ref })
}

// resumes asks every shard for the deliveries of the session.
func (c *Conversation) resumes(welcome *wire.Welcome) {
	c.greeting = &greeting{welcome: welcome, waits: c.facts.Router.Shards()}
	c.out.Resume = &shard.Asker{Sink: c.facts.Sink}
}

// resumed adds the answer of one shard. After the last one it sends the welcome and continues
// with the frames that came after hello.
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
	c.out.InFlight = len(g.welcome.Held)
	c.send(g.welcome)
	c.proceed()
}

// keyring makes and checks the keys by which sessions are resumed. A key is the id of the
// session and a MAC over id, tenant and subject, whose secret is in the data directory. So a
// key is valid after a restart and for no other subject, and the server keeps no list of
// keys. A keyring without a secret makes no key.
type keyring struct {
	secret []byte
}

const keySeparator = "."

// key is the key of a session of a principal.
func (k keyring) key(id wire.SessionID, p *auth.Principal) string {
	if len(k.secret) == 0 {
		return ""
	}
	return id.String() + keySeparator + hex.EncodeToString(k.mac(id, p))
}

// session is the id in a key, if the key is valid for this tenant and subject.
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

func (k keyring) mac(id wire.SessionID, p *auth.Principal) []byte {
	sealed := id.AppendTo(nil)
	for _, part := range []string{p.Tenant, p.Subject} {
		sealed = binary.AppendUvarint(sealed, uint64(len(part)))
		sealed = append(sealed, part...)
	}
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(sealed)
	return mac.Sum(nil)
}
