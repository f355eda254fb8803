// Package auth turns a credential into a principal: the tenant and subject
// that everything a client does is done as.
//
// It owns the seam (Authenticator), the principal with its scopes and commands,
// the rule that a server without authentication listens on loopback only, and
// the file of tokens: how it is written, read, and read again when it changes.
// A principal outlives the call that made it, in sessions above all, so it can
// be asked what its credential stands for by now (Current).
//
// One goroutine belongs to the package, that of Tokens.Watch; everything may
// be used from any goroutine. The package must not know HTTP, sessions or
// tasks: whoever holds a credential asks here, before anything else is done
// with the request.
//
// Credentials, and what the file keeps of them, appear in no error and no log
// line.
package auth
