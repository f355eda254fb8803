package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// AppendYAML appends the settings as a file that could be read back, each with
// its origin behind it; secrets are masked.
func (r *Resolved) AppendYAML(dst []byte) []byte {
	lines := make([]string, len(r.rows))
	width := 0
	for i := range r.rows {
		s := &r.rows[i]
		switch {
		case !s.isSet():
			lines[i] = "# " + s.Name + ":"
		default:
			lines[i] = s.Name + ": " + scalar(s.shown())
		}
		width = max(width, len(lines[i]))
	}
	for i := range r.rows {
		dst = fmt.Appendf(dst, "%-*s  # %s\n", width, lines[i], r.Origin(r.rows[i].Name))
	}
	return dst
}

// scalar quotes a text unless YAML would take it as it is.
func scalar(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:_-") == "" &&
		!strings.HasPrefix(text, "-") && !strings.HasSuffix(text, ":") && text != "null"
	if plain {
		return text
	}
	return string(quoted(text))
}

func quoted(text string) []byte {
	data, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("config: a text that JSON can not hold: %v", err))
	}
	return data
}

// AppendJSON appends one object: {"settings":[{"name","value","origin"},…]}. A
// setting that was left open has no value.
func (r *Resolved) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"settings":[`...)
	for i := range r.rows {
		s := &r.rows[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `{"name":`...), quoted(s.Name)...)
		if s.isSet() {
			dst = append(append(dst, `,"value":`...), quoted(s.shown())...)
		}
		dst = append(append(dst, `,"origin":`...), quoted(r.Origin(s.Name))...)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
