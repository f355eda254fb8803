package config

import (
	"errors"
	"strings"

	"codeq/wire"
)

// Hosts are names of hosts, in a text with commas between them. A second text adds to
// the first.
type Hosts []string

// Origins are origins of web pages, as browsers send them, in a text with commas between
// them.
type Origins []string

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
