package httpapi

import "codeq/shardactor"

// reply is the Sink of one request: a place for the one effect that answers
// one message.
type reply struct{ effect chan shardactor.Effect }

func newReply() *reply { return &reply{effect: make(chan shardactor.Effect, 1)} }

// Deliver implements shardactor.Sink. A shard answers a message once; should
// it say more, the first word counts and nobody waits.
func (p *reply) Deliver(effects []shardactor.Effect) {
	for _, e := range effects {
		select {
		case p.effect <- e:
		default: // already answered
		}
	}
}
