package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"codeq/wire"
)

// Bytes is a size in bytes. Its text has a unit: 512MiB.
type Bytes int64

var units = []struct {
	name  string
	bytes Bytes
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String is the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.bytes == 0 {
			return strconv.FormatInt(int64(b/u.bytes), 10) + u.name
		}
	}
	return "0B"
}

// UnmarshalText reads a whole number with one of the units B, KiB, MiB, GiB
// and TiB.
func (b *Bytes) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, found := strings.CutSuffix(string(text), u.name)
		if !found {
			continue
		}
		n, ok := wire.ParseInteger(digits)
		if !ok || n < 0 || n > int64(math.MaxInt64/u.bytes) {
			break
		}
		*b = Bytes(n) * u.bytes
		return nil
	}
	return errors.New("must be a size like 512MiB, in B, KiB, MiB, GiB or TiB")
}

// number is a value that a range can bound, as a plain number; false for other types.
func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case Bytes:
		return int64(v), true
	case time.Duration:
		return int64(v), true
	}
	return 0, false
}

// parse reads a text as a value of the same type as like. The error begins with "must";
// the caller puts the name in front of it.
func parse(like any, text string) (any, error) {
	switch like.(type) {
	case string:
		if text == "" {
			return nil, errors.New("must not be empty; leave it out for its default")
		}
		if problem := wire.TextProblem(text); problem != "" {
			return nil, errors.New(problem)
		}
		return text, nil
	case bool:
		if text != "true" && text != "false" {
			return nil, errors.New("must be true or false")
		}
		return text == "true", nil
	case int:
		n, ok := wire.ParseInteger(text)
		if !ok {
			return nil, errors.New("must be a whole number")
		}
		return int(n), nil
	case time.Duration:
		d, ok := wire.ParseDuration(text)
		if !ok {
			return nil, errors.New("must be " + wire.DurationForm)
		}
		return d, nil
	case Bytes, Hosts, Origins, Networks:
		v := reflect.New(reflect.TypeOf(like))
		err := v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return v.Elem().Interface(), err
	}
	panic(fmt.Sprintf("config: a setting of type %T", like))
}

// format writes a value in the form that parse reads.
func format(v any) string {
	if d, ok := v.(time.Duration); ok {
		return FormatDuration(d)
	}
	return fmt.Sprint(v)
}

// FormatDuration writes a time without the parts that are zero: 10m, not 10m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
