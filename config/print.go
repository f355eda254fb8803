package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Listing is the settings of a server in the order of the table. As JSON it is the answer
// of GET /v1/codeq/admin/config.
type Listing struct {
	Settings []Listed `json:"settings"`
}

// Listed is one setting. A secret is masked; a setting that is not set has no value.
type Listed struct {
	Name   string  `json:"name"`
	Value  *string `json:"value,omitempty"`
	Origin string  `json:"origin"`
}

// Listing lists the settings with their values now.
func (r *Resolved) Listing() *Listing {
	l := &Listing{}
	for i := range r.rows {
		s := &r.rows[i]
		shown := Listed{Name: s.Name, Origin: r.Origin(s.Name)}
		if s.isSet() {
			value := s.shown()
			shown.Value = &value
		}
		l.Settings = append(l.Settings, shown)
	}
	return l
}

// AppendYAML appends the settings as a file that Resolve can read, with the origin of
// each in a comment.
func (l *Listing) AppendYAML(dst []byte) []byte {
	lines := make([]string, len(l.Settings))
	width := 0
	for i, s := range l.Settings {
		lines[i] = "# " + s.Name + ":"
		if s.Value != nil {
			lines[i] = s.Name + ": " + scalar(*s.Value)
		}
		width = max(width, len(lines[i]))
	}
	for i, s := range l.Settings {
		dst = fmt.Appendf(dst, "%-*s  # %s\n", width, lines[i], s.Origin)
	}
	return dst
}

// scalar quotes a text that YAML would not read as that text.
func scalar(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:_-") == "" &&
		!strings.HasPrefix(text, "-") && !strings.HasSuffix(text, ":") && text != "null"
	if plain {
		return text
	}
	return string(encoded(text))
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: what JSON can not hold: %v", err))
	}
	return data
}

// AppendJSON appends the settings as one object.
func (l *Listing) AppendJSON(dst []byte) []byte { return append(dst, encoded(l)...) }
