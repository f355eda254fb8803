package session

const (
	// helloForMs is how long a socket may be open without a hello.
	helloForMs = 5_000
	// maxMissedPings ends a session: two pings without a pong after them.
	maxMissedPings = 2
	// expiryLeewayMs is how long a session goes on after the end of its credential, because
	// clocks differ and a hello may renew it.
	expiryLeewayMs = 30_000
	// stallMs is how late a deadline may be checked; later the server itself was stalled.
	stallMs = 1_000
	// confirmRetryForMs is the pause until confirmations that a shard did not take are posted
	// again.
	confirmRetryForMs = 1_000
)

// clock holds the deadlines of one conversation, in Unix milliseconds; 0 is
// none.
type clock struct {
	// pingForMs is the time between two regular pings.
	pingForMs int64

	helloByMs   int64
	pingAtMs    int64
	expiresAtMs int64
	confirmAtMs int64

	// missed counts the regular pings in a row without a pong. late says that the last ping
	// had not reached the client at the last check, so its time began later.
	missed  int
	ponged  bool
	waiting bool
	late    bool
}

// opened starts the regular pings.
func (k *clock) opened(nowMs, expiresAtMs int64) {
	k.helloByMs = 0
	k.pingAtMs = nowMs + k.pingForMs
	k.renewed(expiresAtMs)
}

func (k *clock) renewed(expiresAtMs int64) {
	k.expiresAtMs = 0
	if expiresAtMs != 0 {
		k.expiresAtMs = expiresAtMs + expiryLeewayMs
	}
}

// resetMissed clears missed pings whose pongs the server has not read.
func (k *clock) resetMissed() {
	k.ponged = true
	k.missed = 0
}

// next is the earliest deadline, 0 without one.
func (k *clock) next() int64 {
	var next int64
	for _, atMs := range []int64{k.helloByMs, k.pingAtMs, k.expiresAtMs, k.confirmAtMs} {
		if atMs != 0 && (next == 0 || atMs < next) {
			next = atMs
		}
	}
	return next
}

// DeadlineMs is when the conversation needs a Timer, Unix milliseconds; 0 is never.
func (c *Conversation) DeadlineMs() int64 {
	if c.over {
		return 0
	}
	return c.clock.next()
}

// timer does what is due. A deadline that is checked much too late means that the server was
// stalled: it must first read what the client has sent meanwhile.
func (c *Conversation) timer(e *Timer) {
	k := &c.clock
	stalled := c.nowMs > k.next()+stallMs
	if due(k.helloByMs, c.nowMs) {
		if !stalled {
			c.closeSocket(CloseIdle, "no hello within 5 seconds")
			return
		}
		k.helloByMs = c.nowMs + helloForMs
	}
	if due(k.expiresAtMs, c.nowMs) {
		c.closeSocket(CloseCredential, "the credential has expired")
		return
	}
	if due(k.confirmAtMs, c.nowMs) {
		k.confirmAtMs = 0
		c.confirmAgain()
	}
	if due(k.pingAtMs, c.nowMs) {
		c.regularPing(stalled, e)
	}
}

func due(atMs, nowMs int64) bool { return atMs != 0 && atMs <= nowMs }

// regularPing sends the next ping and counts the last one as missed if it got no pong. A ping
// behind other bytes that the client takes is not missed. A ping that does not reach the
// client is missed, even if the client sends something.
func (c *Conversation) regularPing(stalled bool, e *Timer) {
	k := &c.clock
	late := k.late
	k.late = e.Ping != PingArrived
	switch {
	case stalled || c.full || e.Ping == PingMoves:
		k.missed = 0
	case e.Ping == PingStuck:
		k.missed++
	case e.Ping == PingWaits || late || e.Hears:
	case k.waiting && !k.ponged:
		k.missed++
	default:
		k.missed = 0
	}
	if k.missed >= maxMissedPings {
		c.closeSocket(CloseIdle, "no pong for two pings")
		return
	}
	k.waiting, k.ponged = true, false
	k.pingAtMs = c.nowMs + k.pingForMs
	c.ping()
}
