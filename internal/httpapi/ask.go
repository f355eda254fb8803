package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// messageOverheadBytes is the size of a message in a mailbox beside its body.
const messageOverheadBytes = 512

// reply is the Sink of one request: it takes the one effect that answers one message.
type reply struct{ effect chan shard.Effect }

func newReply() *reply { return &reply{effect: make(chan shard.Effect, 1)} }

// Deliver implements shard.Sink. It keeps the first effect and drops others, because a
// shard answers a message once.
func (p *reply) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		select {
		case p.effect <- e:
		default: // already answered
		}
	}
}

// late is an effect that came before the lead was lost, nil if there is none.
func (p *reply) late() shard.Effect {
	select {
	case e := <-p.effect:
		return e
	default:
		return nil
	}
}

// post pushes one message into the mailbox of a shard, or says why it was not taken.
func (a *api) post(shardNo int, m shard.Message, bytes int, class mailbox.Class) *wire.Error {
	return verdictError(a.o.Engine.Post(shardNo, []shard.Message{m}, bytes+messageOverheadBytes, class))
}

// ask posts one message and waits for its answer, an E or a refusal. It ignores the context
// of the request: a shard answers every accepted message within one sync, and a client that
// has closed only its sending side still reads the answer.
func ask[E shard.Effect](
	a *api, shardNo, bytes int, class mailbox.Class, message func(to shard.Asker) shard.Message,
) (answered E, refusal *wire.Error) {
	reply := newReply()
	m := message(shard.Asker{Sink: reply})
	if refusal := a.post(shardNo, m, bytes, class); refusal != nil {
		return answered, refusal
	}
	var effect shard.Effect
	select {
	case effect = <-reply.effect:
	case <-a.o.Lost:
		if effect = reply.late(); effect == nil {
			return answered, notLeaderError
		}
	}
	switch e := effect.(type) {
	case *shard.Refused:
		return answered, e.Err
	case E:
		return e, nil
	default:
		panic(fmt.Sprintf("httpapi: %T was answered by %T", m, e))
	}
}
