package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"codeq/wire"
)

type none struct{ everybody Principal }

// None is the Authenticator of a server without authentication: every client is the
// anonymous subject of the default tenant, whatever credential it sends.
func None() Authenticator {
	return &none{everybody: Principal{Tenant: wire.DefaultTenant, Subject: wire.AnonymousSubject}}
}

// Authenticate implements Authenticator. It never refuses.
func (n *none) Authenticate(context.Context, string) (*Principal, *wire.Error) {
	return &n.everybody, nil
}

// CheckListener returns an error if a server without authentication must not listen on
// addr ("host:port"). It may if insecure is set, or if every address of the host is a
// loopback address; an empty host is all addresses of the machine. A name is resolved,
// which can take a request to a name server. The error is a sentence for the person who
// starts the server.
func CheckListener(addr string, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("read listen address %q: want host:port: %w", addr, err)
	}
	if insecure {
		return nil
	}
	if host == "" {
		return refuseListener(addr, "every address of this machine")
	}
	addresses, err := addressesOf(host)
	if err != nil {
		return fmt.Errorf("resolve listen address %q: %w", addr, err)
	}
	for _, a := range addresses {
		if !a.Unmap().IsLoopback() {
			return refuseListener(addr, a.String())
		}
	}
	return nil
}

func addressesOf(host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil {
		return nil, fmt.Errorf("look up host: %w", err)
	}
	if len(found) == 0 {
		return nil, errors.New("the name stands for no address")
	}
	return found, nil
}

func refuseListener(addr, reached string) error {
	return fmt.Errorf("listen address %q reaches %s, and without authentication anybody there could post and take tasks: "+
		"listen on 127.0.0.1 instead, or pass --insecure-no-auth if the network itself keeps strangers out", addr, reached)
}
