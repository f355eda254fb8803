// Package auth turns a credential into a principal: the tenant and subject
// that everything a client does is done as.
//
// It owns the seam (Authenticator), the principal, and the rule that a server
// without authentication listens on loopback only. It starts no goroutine;
// everything in it may be used from any goroutine. It must not know HTTP,
// sessions or tasks: whoever holds a credential asks here, before anything
// else is done with the request.
//
// Credentials appear in no error and no log line.
package auth
