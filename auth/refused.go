package auth

import "codeq/wire"

// Attempt is something that was refused because of who asked for it.
type Attempt struct {
	// Remote is the address of the other end, host:port.
	Remote string
	// What was asked for: a method and a path, or a frame.
	What string
	// Who is the one that asked; nil for a credential that stands for nobody.
	Who     *Principal
	Refusal *wire.Error
}

// AboutWho reports whether a refusal is about who asks: there is no credential, it
// is not good, or not for this, or the page or name that was used may not be. Any
// goroutine.
func AboutWho(refusal *wire.Error) bool {
	switch refusal.Code {
	case wire.CodeUnauthenticated, wire.CodeForbidden, wire.CodeForbiddenHost, wire.CodeForbiddenOrigin:
		return true
	}
	return false
}
