package callback

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"codeq/wire"
)

// Guard decides which addresses are called. It looks at the address of each connection when
// that is made, so neither a name that points elsewhere by then nor another spelling of an
// address passes. It may be used from any goroutine.
type Guard struct {
	hosts    map[string]bool
	prefixes []netip.Prefix
	public   *ssrf.Guardian
}

// NewGuard makes a guard that lets calls out to public addresses over https, and to those of
// allow over http, too: host names, addresses and networks such as 10.0.0.0/8.
func NewGuard(allow []string) (*Guard, error) {
	g := &Guard{hosts: make(map[string]bool), public: ssrf.New(ssrf.WithAnyPort())}
	for _, text := range allow {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			g.prefixes = append(g.prefixes, prefix.Masked())
			continue
		}
		if address, err := netip.ParseAddr(text); err == nil {
			g.prefixes = append(g.prefixes, netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))
			continue
		}
		host, ok := wire.ParseHost(text)
		if !ok || host.Port != "" {
			return nil, errors.New("webhook-allow must be a host name, an IP address or a network such as 10.0.0.0/8, got " + text)
		}
		g.hosts[host.Name] = true
	}
	return g, nil
}

// refusal is why a guard does not let a call out.
type refusal string

func (r refusal) Error() string { return string(r) }

const dialFor = 10 * time.Second

// dial makes the function that connects for http, if plain, or for https.
func (g *Guard) dial(plain bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialFor}
		name, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if host, _ := wire.ParseHost(name); !g.hosts[host.Name] || host.IsIP {
			d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
				return g.check(address, plain)
			}
		}
		return d.DialContext(ctx, network, address)
	}
}

// check refuses an address and port to which no connection may be made.
func (g *Guard) check(address string, plain bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusal("the address " + address + " cannot be read")
	}
	ip := at.Addr().Unmap()
	for _, prefix := range g.prefixes {
		if prefix.Contains(ip) {
			return nil
		}
	}
	if plain {
		return refusal("http is for hosts that the server allows with --webhook-allow: use https")
	}
	if g.public.SafeAddr(ip) != nil {
		return refusal("its host has no public address, and the server does not allow it with --webhook-allow")
	}
	return nil
}
