package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// messageOverheadBytes is the size of a message in a mailbox beside its body.
const messageOverheadBytes = 512

// reply is the Sink of one request: it takes the one effect that answers one message.
type reply struct{ effect chan shardactor.Effect }

func newReply() *reply { return &reply{effect: make(chan shardactor.Effect, 1)} }

// Deliver implements shardactor.Sink. It keeps the first effect and drops others, because a
// shard answers a message once.
func (p *reply) Deliver(effects []shardactor.Effect) {
	for _, e := range effects {
		select {
		case p.effect <- e:
		default: // already answered
		}
	}
}

// post pushes one message into the mailbox of a shard, or says why it was not taken.
func (a *api) post(shard int, m shardactor.Message, bytes int, class mailbox.Class) *wire.Error {
	return verdictError(a.o.Engine.Post(shard, []shardactor.Message{m}, bytes+messageOverheadBytes, class))
}

// ask posts one message and waits for its answer, an E or a refusal. It ignores the context
// of the request: a shard answers every accepted message within one sync, and a client that
// has closed only its sending side still reads the answer.
func ask[E shardactor.Effect](
	a *api, shard, bytes int, class mailbox.Class, message func(to shardactor.Asker) shardactor.Message,
) (answered E, refusal *wire.Error) {
	reply := newReply()
	m := message(shardactor.Asker{Sink: reply})
	if refusal := a.post(shard, m, bytes, class); refusal != nil {
		return answered, refusal
	}
	switch e := (<-reply.effect).(type) {
	case *shardactor.Refused:
		return answered, e.Err
	case E:
		return e, nil
	default:
		panic(fmt.Sprintf("httpapi: %T was answered by %T", m, e))
	}
}
