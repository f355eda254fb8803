// Package identity turns the tokens of identity providers into principals: JSON web tokens,
// whose signature it checks with the keys of their issuer, and opaque tokens, about which it
// asks a provider.
//
// It owns the file of providers, the keys of issuers and what it remembers about tokens. A token
// is recognised by its form and its issuer, and one provider decides about it. What costs nothing
// is checked first: a token whose form, algorithm, issuer, audience or times are wrong causes no
// request. A provider that cannot be asked is auth_unavailable, and not unauthenticated, because
// clients throw a token away after that.
//
// Start begins one goroutine, which reads keys again and asks again about the tokens of open
// sessions, until Stop; each request to a provider has one, for which Close waits. Every function
// may be called from any goroutine. No error and no log line contains a token, a secret or a part
// of them.
package identity
