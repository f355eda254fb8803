// Package auth turns a credential into a principal: the tenant and subject for whom the
// server does everything that a client asks for.
//
// It owns the interface Authenticator, the principal with its scopes and commands, the
// rule that a server without authentication listens on loopback addresses only, the token
// file: its form, and how it is read, and read again when it changes, the client
// certificates that it names, and the cookies with which a browser stays logged in. A
// session keeps its principal for hours, so Principal.Current says what its credential is
// good for now.
//
// The package has one goroutine, that of WatchFile. Every function may be called from
// any goroutine. The package must not know HTTP, sessions or tasks: its callers
// authenticate a request before they do anything else with it.
//
// No error and no log line contains a credential, or what the file has of one.
package auth
