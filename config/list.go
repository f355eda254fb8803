package config

import (
	"errors"
	"net/netip"
	"strings"

	"codeq/wire"
)

// Hosts are names of hosts, in a text with commas between them. A second text adds to
// the first.
type Hosts []string

// Origins are origins of web pages, as browsers send them, in a text with commas between
// them.
type Origins []string

// Networks are host names, IP addresses and networks, in a text with commas between them.
type Networks []string

// String is the list as UnmarshalText reads it.
func (n Networks) String() string { return strings.Join(n, ",") }

// UnmarshalText adds to what is there.
func (n *Networks) UnmarshalText(text []byte) error {
	for one := range strings.SplitSeq(string(text), ",") {
		_, noNetwork := netip.ParsePrefix(one)
		_, noAddress := netip.ParseAddr(one)
		if host, ok := wire.ParseHost(one); noNetwork != nil && noAddress != nil && (!ok || host.Port != "") {
			return errors.New("must be the name of a host like hooks.example, an IP address or a network like 10.0.0.0/8, or several with commas between")
		}
		*n = append(*n, one)
	}
	return nil
}

// String is the hosts as UnmarshalText reads them.
func (h Hosts) String() string { return strings.Join(h, ",") }

// String is the origins as UnmarshalText reads them.
func (o Origins) String() string { return strings.Join(o, ",") }

// UnmarshalText adds hosts to those that are there.
func (h *Hosts) UnmarshalText(text []byte) error {
	for host := range strings.SplitSeq(string(text), ",") {
		if parsed, ok := wire.ParseHost(host); !ok || parsed.Port != "" {
			return errors.New("must be the name of a host like queue.example, without scheme and port (xn--… if it is not ASCII), or several with commas between")
		}
		*h = append(*h, host)
	}
	return nil
}

// UnmarshalText adds origins to those that are there.
func (o *Origins) UnmarshalText(text []byte) error {
	for origin := range strings.SplitSeq(string(text), ",") {
		if _, ok := wire.ParseOrigin(origin); !ok {
			return errors.New("must be the origin of a page like https://app.example or http://localhost:3000, without a path, or several with commas between")
		}
		*o = append(*o, origin)
	}
	return nil
}
