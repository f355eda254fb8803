package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// envPrefix begins the name of every variable.
const envPrefix = "CODEQ_"

// Setting is one row of a table.
type Setting struct {
	// Name is the flag without its dashes and the key in the file.
	Name    string
	Help    string
	Default string // "" is none
	// Range is "lowest..highest", "" for none.
	Range  string
	Enum   []string
	Secret bool

	field reflect.Value
}

// Env is the name of the variable.
func (s *Setting) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Target is a pointer to the field of the struct that the row describes.
func (s *Setting) Target() any { return s.field.Addr().Interface() }

// Flag is the flag with its dashes.
func (s *Setting) Flag() string { return "--" + s.Name }

// Table makes the rows from a pointer to a struct such as Serve. It panics on a tag that
// is wrong, which is a mistake in the program.
func Table(of any) []Setting {
	v := reflect.ValueOf(of).Elem()
	rows := make([]Setting, 0, v.NumField())
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			rows = append(rows, Table(v.Field(i).Addr().Interface())...)
			continue
		}
		tag := v.Type().Field(i).Tag
		s := Setting{
			Name: tag.Get("name"), Help: tag.Get("help"), Default: tag.Get("default"), Range: tag.Get("range"),
			field: v.Field(i),
		}
		_, s.Secret = tag.Lookup("secret")
		if words := tag.Get("enum"); words != "" {
			s.Enum = strings.Split(words, ",")
		}
		if s.Name == "" || s.Help == "" {
			panic(fmt.Sprintf("config: field %s has no name or no help", v.Type().Field(i).Name))
		}
		if _, err := s.read(s.Default); s.Default != "" && err != nil {
			panic(fmt.Sprintf("config: the default of %s %v", s.Name, err))
		}
		rows = append(rows, s)
	}
	return rows
}

func (s *Setting) value() any { return s.field.Interface() }

// isSet reports whether the setting has a value.
func (s *Setting) isSet() bool { return s.Default != "" || !s.field.IsZero() }

// read parses a text and checks the value against range and enum. The error is the end
// of a sentence; the caller puts in front of it where the text was found.
func (s *Setting) read(text string) (any, error) {
	v, err := parse(s.value(), text)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, s.got(text))
	}
	return v, s.check(v)
}

// check checks a value against range and enum.
func (s *Setting) check(v any) error {
	if word, ok := v.(string); ok && s.Enum != nil && !slices.Contains(s.Enum, word) {
		return fmt.Errorf("must be one of %s%s", strings.Join(s.Enum, ", "), s.got(word))
	}
	if s.Range == "" {
		return nil
	}
	low, high := s.bounds()
	lowest, _ := number(low)
	highest, _ := number(high)
	if n, ok := number(v); !ok || n < lowest || n > highest {
		return fmt.Errorf("must be from %s to %s%s", format(low), format(high), s.got(format(v)))
	}
	return nil
}

func (s *Setting) bounds() (low, high any) {
	from, to, _ := strings.Cut(s.Range, "..")
	low, errLow := parse(s.value(), from)
	high, errHigh := parse(s.value(), to)
	if errLow != nil || errHigh != nil {
		panic(fmt.Sprintf("config: the range of %s is %q", s.Name, s.Range))
	}
	return low, high
}

// got is the end of an error, with the given value if it may be shown.
func (s *Setting) got(text string) string {
	const most = 60
	switch {
	case s.Secret || text == "":
		return ""
	case len(text) > most:
		return fmt.Sprintf(", got %d characters", len(text))
	}
	return fmt.Sprintf(", got %q", text)
}

// shown is the value, or asterisks for a secret.
func (s *Setting) shown() string {
	if s.Secret {
		return "********"
	}
	return format(s.value())
}
