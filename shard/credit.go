package shard

import "codeq/wire"

// Consumer is one socket of a session, or one claim over HTTP, as the shards see it:
// who it is, where its effects go, and the credit it has for tasks.
type Consumer struct {
	ID wire.SessionID
	// Epoch orders the sockets of one session: a later one is higher.
	Epoch    uint64
	Tenant   string
	Subject  string
	WorkerID string
	OverHTTP bool
	Sink     Sink
	Credit   Credit
}

// Credit is the window of a consumer over all shards, as one shard takes from it: see
// credit.Window, which is the only one outside of tests. The shards share it, so its
// methods may be called from any goroutine, and none blocks.
type Credit interface {
	// Take takes one for a task of so many payload bytes, or notes that the shard
	// waits; Give returns some, or with 0 looks whether a shard may be woken. Carry
	// notes the bytes of a task that goes with one which the shard has already.
	Take(shard, payloadBytes int) bool
	AddBytes(payloadBytes int) bool
	Return(credits int)
	// InFlight is how many are taken, InDebt whether those are more than the window.
	InFlight() int
	InDebt() bool
	// MayReuse says whether a shard may use at once one that is about to come back,
	// OthersWait whether another shard waits for one, Portion what this shard should
	// have meanwhile, by the ready queues that each has told with SetReady.
	MayReuse() bool
	OthersWait(shard int) bool
	Portion(shard int) int
	SetReady(shard int, queues int32)
	// IsIdle says that nothing is on its way to the client. The others give a shard
	// the window alone, for a suspect.
	IsIdle(mine, hasCredit bool) bool
	IsAlone() bool
	TakeAlone(shard, payloadBytes int, hasCredit bool) (taken, mine bool)
	WaitAlone(shard int) bool
	Share()
}

// leaseSession is the session that carries the leases of this consumer: none over HTTP.
func (s *Consumer) leaseSession() wire.SessionID {
	if s.OverHTTP {
		return wire.SessionID{}
	}
	return s.ID
}
