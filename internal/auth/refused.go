package auth

import "codeq/wire"

// Attempt is a request or hello that was refused because of the credential, the page or
// the host name that came with it.
type Attempt struct {
	// Remote is the address of the other end, host:port.
	Remote string
	// What is the method and path, or the name of the frame.
	What string
	// Who is the principal; nil if the credential has none.
	Who     *Principal
	Refusal *wire.Error
}

// AboutWho reports whether a refusal is about the client and not about its request: the
// credential is missing, unknown or lacks a right, or the page or host name is not
// allowed. Any goroutine.
func AboutWho(refusal *wire.Error) bool {
	switch refusal.Code {
	case wire.CodeUnauthenticated, wire.CodeForbidden, wire.CodeForbiddenHost, wire.CodeForbiddenOrigin:
		return true
	}
	return false
}
