package session

const (
	// helloForMs is how long a socket may be open without a hello.
	helloForMs = 5_000
	// maxMissedPings ends a session: two pings without a pong after them.
	maxMissedPings = 2
	// expiryLeewayMs is how long a session lives on after its credential
	// ended, for clocks that differ and for a hello that renews it.
	expiryLeewayMs = 30_000
	// stallMs is how late a deadline may be looked at before the server takes
	// itself for the one that was away.
	stallMs = 1_000
	// confirmRetryForMs is the pause before confirmations that a full shard
	// did not take are offered again.
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

	// missed counts the regular pings, in a row, that no pong came after. late says
	// that the last one had not reached the client when it was looked at, so that
	// its time began after that.
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

// readsOn forgives pings whose pongs the server itself did not read.
func (k *clock) readsOn() {
	k.ponged = true
	k.missed = 0
}

// next is the earliest deadline, 0 if there is none.
func (k *clock) next() int64 {
	var next int64
	for _, atMs := range []int64{k.helloByMs, k.pingAtMs, k.expiresAtMs, k.confirmAtMs} {
		if atMs != 0 && (next == 0 || atMs < next) {
			next = atMs
		}
	}
	return next
}

// DeadlineMs is when the conversation wants a Timer, in Unix milliseconds; 0
// is never.
func (c *Conversation) DeadlineMs() int64 {
	if c.over {
		return 0
	}
	return c.clock.next()
}

// timer does what is due. A deadline that is looked at much too late means
// that the server slept, not the client: what came meanwhile is to be read
// first.
func (c *Conversation) timer(e *Timer) {
	k := &c.clock
	stalled := c.nowMs > k.next()+stallMs
	if due(k.helloByMs, c.nowMs) {
		if !stalled {
			c.end(CloseIdle, "no hello within 5 seconds")
			return
		}
		k.helloByMs = c.nowMs + helloForMs
	}
	if due(k.expiresAtMs, c.nowMs) {
		c.end(CloseCredential, "the credential has expired")
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

// regularPing asks the client whether it is there. A ping that stands behind other
// bytes, which the client takes, is not missed; one that does not get through is,
// whatever the client says meanwhile.
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
		c.end(CloseIdle, "no pong for two pings")
		return
	}
	k.waiting, k.ponged = true, false
	k.pingAtMs = c.nowMs + k.pingForMs
	c.ping()
}
