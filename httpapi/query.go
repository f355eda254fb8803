package httpapi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"codeq/wire"
)

// readQuery reads the parameters of a request. Only known ones are allowed, each once and
// with a value. An empty cursor is the first page.
func (c *call) readQuery(known []string) *wire.Error {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return wire.Refuse(wire.CodeInvalidArgument, "the query is not of the form name=value&name=value with % escapes")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return wire.Refuse(wire.CodeUnknownMember, wire.NotKnown("parameter ", name, known))
		}
		if given := values[name]; len(given) > 1 || given[0] == "" && name != "cursor" {
			return wire.Refuse(wire.CodeInvalidArgument, name+" must be given once and not be empty, or left out")
		}
	}
	c.query = values
	return nil
}

// limit reads the parameter limit; absent is its default.
func (c *call) limit(absent, most int) (int, *wire.Error) {
	text := c.query.Get("limit")
	if text == "" {
		return absent, nil
	}
	n, ok := wire.ParseInteger(text)
	if !ok || n < 1 || n > int64(most) {
		return 0, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("limit must be an integer from 1 to %d", most))
	}
	return int(n), nil
}

// causes reads the parameter cause; without one it is 0, which is all.
func (c *call) causes() (wire.DeadCauses, *wire.Error) {
	if text := c.query.Get("cause"); text != "" {
		return wire.ParseDeadCauses(text)
	}
	return 0, nil
}
