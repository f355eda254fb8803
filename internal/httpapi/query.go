package httpapi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"codeq/wire"
)

// readQuery reads the parameters of a request. Only known ones are allowed, each once, but for
// label, and with a value. An empty cursor is the first page.
func (c *call) readQuery(known []string) *wire.Error {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return wire.Refuse(wire.CodeInvalidArgument, "the query is not of the form name=value&name=value with % escapes")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return wire.Refuse(wire.CodeUnknownMember, wire.NotKnown("parameter ", name, known))
		}
		if given := values[name]; len(given) > 1 && name != "label" || given[0] == "" && name != "cursor" {
			return wire.Refuse(wire.CodeInvalidArgument, name+" must be given once and not be empty, or left out")
		}
	}
	c.query = values
	return nil
}

// integer reads a parameter that is a number from least to most; absent is its default.
func (c *call) integer(name string, absent, least, most int) (int, *wire.Error) {
	text := c.query.Get(name)
	if text == "" {
		return absent, nil
	}
	n, ok := wire.ParseInteger(text)
	if !ok || n < int64(least) || n > int64(most) {
		return 0, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("%s must be an integer from %d to %d", name, least, most))
	}
	return int(n), nil
}

// yes reads a parameter that is true or false; absent is false.
func (c *call) yes(name string) (bool, *wire.Error) {
	switch text := c.query.Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("%s must be true or false, got %.40q", name, text))
	}
}

// causes reads the parameter cause; without one it is 0, which is all.
func (c *call) causes() (wire.DeadCauses, *wire.Error) {
	if text := c.query.Get("cause"); text != "" {
		return wire.ParseDeadCauses(text)
	}
	return 0, nil
}
