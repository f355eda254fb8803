package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/wire"
)

// retryAfterSeconds is the advice with a refusal that passes by itself and has no advice.
const retryAfterSeconds = 1

// refuse turns a refusal into its answer.
func refuse(e *wire.Error) answer {
	e = e.Advised(retryAfterSeconds)
	return answer{
		status: e.Code.HTTPStatus(), refusal: e, body: wire.AppendError(nil, e), retryAfterSeconds: e.RetryAfterSeconds,
	}
}

// Refusals that are always the same. Nobody changes them: who adds something, copies first.
var (
	notFound = wire.Refuse(wire.CodeNotFound, "there is nothing at this path; the API lies below "+base)
	// internalError says nothing about the cause; the log has it under the request id.
	internalError     = wire.Refuse(wire.CodeInternal, "the server failed at this request; its log says more under the request id")
	startingError     = wire.Refuse(wire.CodeDraining, "the server is starting and not ready yet; try again in a moment")
	drainingError     = wire.Refuse(wire.CodeDraining, "the server is shutting down; try again when it is back")
	notLeaderError    = wire.Refuse(wire.CodeNotLeader, "this node does not lead the cluster any more, and what became of the request is not known; send it again to the leader")
	overloadedError   = wire.Refuse(wire.CodeOverloaded, "the shard of this task has too many requests waiting; try again in a second")
	storageFullError  = wire.Refuse(wire.CodeStorageFull, "the disk is nearly full and takes no new task; free space there, then try again")
	noGrantError      = wire.Refuse(wire.CodeStorageFull, "the disk is nearly full (no-grant): no task is delivered, and results are still accepted; free space there, then try again")
	onlyDeleteError   = wire.Refuse(wire.CodeStorageFull, "the disk is full (only-delete): no task is delivered, and results are refused; free space there, then try again")
	credentialRevoked = wire.Refuse(wire.CodeUnauthenticated, "the token was revoked while the request waited")
	unknownTaskID     = wire.Refuse(wire.CodeTaskNotFound, "no task can have this id: an id is a UUID of 36 characters in lower case")
	badCursor         = wire.Refuse(wire.CodeInvalidArgument, "cursor must be that of the page before in the same list; leave it out for the first page")
	unknownSession    = wire.Refuse(wire.CodeSessionNotFound, "no connected session has this id")
	badSessionCursor  = wire.Refuse(wire.CodeInvalidArgument, "cursor must be that of the page before; leave it out for the first page")
	answersHeld       = wire.Refuse(wire.CodeOverloaded,
		"answers that clients have not read yet fill the memory for answers; read the answers to your requests, and try again in a second")
)

func unknownTask(id wire.TaskID) *wire.Error {
	return wire.Refuse(wire.CodeTaskNotFound, "there is no task "+id.String())
}

// lost reports whether the node leads no more.
func (a *api) lost() bool {
	select {
	case <-a.o.Lost:
		return true
	default:
		return false
	}
}

// leaving is why requests do not wait any longer, nil while they may.
func (a *api) leaving() *wire.Error {
	select {
	case <-a.o.Draining:
	default:
		return nil
	}
	if a.lost() {
		return notLeaderError
	}
	return drainingError
}

// verdictError is why a shard did not take a push, nil if it did.
func verdictError(verdict mailbox.Verdict) *wire.Error {
	switch verdict {
	case mailbox.Accepted:
		return nil
	case mailbox.Full:
		return overloadedError
	case mailbox.Closed:
		return drainingError
	default:
		panic(fmt.Sprintf("httpapi: a post was answered by %v", verdict))
	}
}
