package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/wire"
)

// retryAfterSeconds is the advice that goes with a refusal for the moment,
// when who refused gave none.
const retryAfterSeconds = 1

// refuse turns a refusal into its answer.
func refuse(e *wire.Error) answer {
	e = advised(e)
	return answer{
		status: e.Code.HTTPStatus(), refusal: e, body: wire.AppendError(nil, e), retryAfterSeconds: e.RetryAfterSeconds,
	}
}

// advised adds the advice when to try again, where the code wants one.
func advised(e *wire.Error) *wire.Error { return e.Advised(retryAfterSeconds) }

func notFound() answer {
	return refuse(wire.Refuse(wire.CodeNotFound, "there is nothing at this path; the API lies below "+base))
}

func methodNotAllowed(method, allow string) answer {
	ans := refuse(wire.Refuse(wire.CodeMethodNotAllowed,
		fmt.Sprintf("this path takes %s, not %.20q", allow, method)))
	ans.allow = allow
	return ans
}

// internalError says nothing about what happened; the log does, by request id.
func internalError() *wire.Error {
	return wire.Refuse(wire.CodeInternal, "the server failed at this request; its log says more under the request id")
}

func startingError() *wire.Error {
	return wire.Refuse(wire.CodeDraining, "the server is starting and not ready yet; try again in a moment")
}

func drainingError() *wire.Error {
	return wire.Refuse(wire.CodeDraining, "the server is shutting down; try again when it is back")
}

func overloadedError() *wire.Error {
	return wire.Refuse(wire.CodeOverloaded, "the shard of this task has more waiting than it takes; try again in a second")
}

func storageFullError() *wire.Error {
	return wire.Refuse(wire.CodeStorageFull, "the disk is nearly full and takes no new task; free space there, then try again")
}

func noGrantError() *wire.Error {
	return wire.Refuse(wire.CodeStorageFull, "the disk is nearly full and no task is handed out; free space there, then try again")
}

func credentialGone() *wire.Error {
	return wire.Refuse(wire.CodeUnauthenticated, "the token was taken back while the request waited")
}

func notForCommand(command string) *wire.Error {
	return wire.Refuse(wire.CodeForbidden, "this credential may not use the command "+command)
}

// verdictError is why a shard did not take a push, nil if it did.
func verdictError(verdict mailbox.Verdict) *wire.Error {
	switch verdict {
	case mailbox.Accepted:
		return nil
	case mailbox.Full:
		return overloadedError()
	case mailbox.Closed:
		return drainingError()
	default:
		panic(fmt.Sprintf("httpapi: a post was answered by %v", verdict))
	}
}

func unknownTaskID() *wire.Error {
	return wire.Refuse(wire.CodeTaskNotFound, "no task can have this id: an id is a UUID of 36 characters in lower case")
}

func unknownTask(id wire.TaskID) *wire.Error {
	return wire.Refuse(wire.CodeTaskNotFound, "there is no task "+id.String())
}
