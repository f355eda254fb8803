package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"slices"
	"time"

	"codeq/wire"
)

type certificateKey struct{}

// WithCertificate is ctx for Authenticate of a client that has shown a certificate, which was
// checked against its issuers. It counts for a client without a bearer credential.
func WithCertificate(ctx context.Context, leaf *x509.Certificate) context.Context {
	return context.WithValue(ctx, certificateKey{}, leaf)
}

// certificateOf is the certificate of WithCertificate, nil without one.
func certificateOf(ctx context.Context) *x509.Certificate {
	leaf, _ := ctx.Value(certificateKey{}).(*x509.Certificate)
	return leaf
}

// digestOfName is by what the entry of a name is found. No bearer credential has this digest,
// because none has a space in it.
func digestOfName(name string) digest { return sha256.Sum256([]byte("certificate " + name)) }

// ofCertificate is the principal of a certificate, which ends with it. Its names may lead to one
// entry.
func (t *Tokens) ofCertificate(leaf *x509.Certificate) (*Principal, *wire.Error) {
	refuse := func(sentence string) (*Principal, *wire.Error) {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the client certificate "+sentence)
	}
	names := slices.Concat(leaf.DNSNames, leaf.EmailAddresses)
	for _, uri := range leaf.URIs {
		names = append(names, uri.String())
	}
	var who *Principal
	for _, name := range names {
		found := t.find(digestOfName(name))
		if found != nil && who != nil && found != who {
			return refuse("has the names of two entries of the token file, and may have that of one")
		}
		if found != nil {
			who = found
		}
	}
	if who == nil {
		return refuse("has no name (SAN) that is the certificate of an entry of the token file; without such an entry, send a token")
	}
	who = who.until(leaf.NotAfter.UnixMilli())
	if who.ExpiredAt(t.nowMs()) {
		return refuse("or its entry in the token file expired at " + time.UnixMilli(who.ExpiresAtMs).UTC().Format(time.RFC3339))
	}
	return who, nil
}
