package wire

import (
	"net/netip"
	"strings"
)

// Host is the value of a Host header, or of a setting that names a host.
type Host struct {
	// Name is in lower case and without a final dot; an IPv6 address stands
	// without brackets, in its shortest form.
	Name string
	// Port is "" where none is given.
	Port string
	// IsIP: Name is an IP address, which no name server can point elsewhere.
	IsIP bool
}

const (
	maxHostBytes = 253
	maxPort      = 65535
)

// ParseHost reads "name", "name:port", "127.0.0.1:80" or "[::1]:80", and
// reports whether text is one of them. Names are ASCII: letters, digits,
// hyphens, underscores and dots. It may be called from any goroutine.
func ParseHost(text string) (Host, bool) {
	var h Host
	rest := ""
	if inside, bracketed := strings.CutPrefix(text, "["); bracketed {
		inside, after, closed := strings.Cut(inside, "]")
		address, err := netip.ParseAddr(inside)
		if err != nil || !closed || !address.Is6() {
			return Host{}, false
		}
		h.Name, h.IsIP, rest = address.String(), true, after
	} else {
		end := len(text)
		if colon := strings.IndexByte(text, ':'); colon >= 0 {
			end = colon
		}
		h.Name, rest = text[:end], text[end:]
		if _, err := netip.ParseAddr(h.Name); err == nil {
			h.IsIP = true
		} else if h.Name = strings.TrimSuffix(lowerASCII(h.Name), "."); !isHostName(h.Name) {
			return Host{}, false
		}
	}
	port, colon := strings.CutPrefix(rest, ":")
	if rest != "" && !colon {
		return Host{}, false
	}
	if port != "" {
		if n, ok := ParseInteger(port); !ok || n < 0 || n > maxPort {
			return Host{}, false
		}
	}
	h.Port = port
	return h, true
}

func isHostName(name string) bool {
	if name == "" || len(name) > maxHostBytes || strings.Contains("."+name+".", "..") {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return false // it had a final dot, and so is neither
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && !isDigit(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// lowerASCII changes A to Z alone: Unicode folding would turn a name with a long s into
// "localhost".
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, text)
}

// Origin is the origin of a page, as browsers compare it: scheme, host and port, the port
// always written. Two origins are the same if they are equal.
type Origin string

// ParseOrigin reads "http://host", "https://host" or either with a port, and
// reports whether text is that and nothing more: no path, no user, not "null".
// It may be called from any goroutine.
func ParseOrigin(text string) (Origin, bool) {
	scheme, rest, _ := strings.Cut(text, "://")
	scheme = lowerASCII(scheme)
	h, ok := ParseHost(rest)
	if !ok || scheme != "http" && scheme != "https" {
		return "", false
	}
	return h.Origin(scheme == "https"), true
}

// Origin is the origin of the pages that this host serves over HTTP, or HTTPS if secure.
func (h Host) Origin(secure bool) Origin {
	scheme, port := "http", "80"
	if secure {
		scheme, port = "https", "443"
	}
	if h.Port != "" {
		port = h.Port
	}
	name := h.Name
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return Origin(scheme + "://" + name + ":" + port)
}
