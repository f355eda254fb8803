package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	idForm    = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	tokenForm = `[0-9a-f]{64}|[0-9a-f]{32}`
	timeForm  = `\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z`
)

var (
	idOrToken = regexp.MustCompile(`\b(?:` + idForm + `|` + tokenForm + `)\b`)
	anyForm   = regexp.MustCompile(`\b(?:(` + idForm + `)|(` + tokenForm + `)|(` + timeForm + `))\b`)
)

// volatile are members whose values the page only gives an example of.
var volatile = []string{"version", "go", "clockDifferenceMs", "graceSeconds", "secret"}

// more is the mark of a page for members that it leaves out.
const more = "…"

// names relates ids and tokens of the page to those of the server, one to one.
// Times are only compared by their form, and members that are loose by their kind.
type names struct {
	real, page map[string]string
	loose      []string
}

func newNames() names {
	return names{real: map[string]string{}, page: map[string]string{}, loose: volatile}
}

func (n names) clone() names {
	return names{real: maps.Clone(n.real), page: maps.Clone(n.page), loose: n.loose}
}

func (n names) bind(page, real string) error {
	if known, ok := n.real[page]; ok && known != real {
		return fmt.Errorf("%s stood for %s and now for %s", page, known, real)
	}
	if known, ok := n.page[real]; ok && known != page {
		return fmt.Errorf("%s is called %s and now %s", real, known, page)
	}
	n.real[page], n.page[real] = real, page
	return nil
}

// fill puts the server's ids and tokens into a text of the page.
func (n names) fill(text string) string {
	return idOrToken.ReplaceAllStringFunc(text, func(name string) string {
		if real, ok := n.real[name]; ok {
			return real
		}
		return name
	})
}

// text compares a text of the page with one of the server.
func (n names) text(page, real string) error {
	pattern, at := "^", 0
	var marks []string // what of page the groups of the pattern stand for
	for _, m := range anyForm.FindAllStringSubmatchIndex(page, -1) {
		pattern += regexp.QuoteMeta(page[at:m[0]])
		at = m[1]
		switch {
		case m[2] >= 0:
			pattern += "(" + idForm + ")"
			marks = append(marks, page[m[0]:m[1]])
		case m[4] >= 0:
			pattern += "(" + tokenForm + ")"
			marks = append(marks, page[m[0]:m[1]])
		default:
			pattern += timeForm
		}
	}
	pattern += regexp.QuoteMeta(page[at:]) + "$"
	found := regexp.MustCompile(`(?s)` + pattern).FindStringSubmatch(real)
	if found == nil {
		return fmt.Errorf("the page says %q, the server %q", page, real)
	}
	for i, mark := range marks {
		if err := n.bind(mark, found[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// value compares a value of the page with one of the server; at says where.
func (n names) value(at string, page, real any) error {
	switch page := page.(type) {
	case map[string]any:
		real, ok := real.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", at)
		}
		return n.object(at, page, real)
	case []any:
		real, ok := real.([]any)
		if last := len(page) - 1; last >= 0 && page[last] == more && len(real) > last {
			page, real = page[:last], real[:last]
		}
		if !ok || len(real) != len(page) {
			return fmt.Errorf("%s: the page has %d elements, the server says %v", at, len(page), real)
		}
		for i := range page {
			if err := n.value(fmt.Sprintf("%s[%d]", at, i), page[i], real[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		real, ok := real.(string)
		if !ok {
			return fmt.Errorf("%s is no string", at)
		}
		if err := n.text(page, real); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	}
	if page != real {
		return fmt.Errorf("%s: the page says %v, the server %v", at, page, real)
	}
	return nil
}

func (n names) object(at string, page, real map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(page)) {
		value, ok := real[name]
		switch {
		case name == more:
		case !ok:
			return fmt.Errorf("%s.%s is only in the page", at, name)
		case slices.Contains(n.loose, name):
			if fmt.Sprintf("%T", page[name]) != fmt.Sprintf("%T", value) {
				return fmt.Errorf("%s.%s is a %T in the page and a %T of the server", at, name, page[name], value)
			}
		default:
			if err := n.value(at+"."+name, page[name], value); err != nil {
				return err
			}
		}
	}
	if _, some := page[more]; some {
		return nil
	}
	for name := range real {
		if _, ok := page[name]; !ok {
			return fmt.Errorf("%s.%s is missing in the page", at, name)
		}
	}
	return nil
}

// parseJSON reads one value with numbers as they are written. In a page the
// mark for more may stand in an object, and at the end of a list.
func parseJSON(text string) (any, error) {
	text = strings.ReplaceAll(text, ","+more+"]", `,"`+more+`"]`)
	for _, before := range []string{",", "{"} {
		text = strings.ReplaceAll(text, before+more, before+`"`+more+`":0`)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read %.60s: %w", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("read %.60s: more than one value", text)
	}
	return v, nil
}

func TestThePageIsComparedValueByValue(t *testing.T) {
	const id, other = "01a21f90-1ec2-741a-92dc-12e28e9a752f", "11a21f90-1ec2-741a-92dc-12e28e9a7520"
	for _, c := range []struct {
		page, real string
		same       bool
	}{
		{`{"a":1}`, `{"a":1}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{}`, false},
		{`{}`, `{"a":1}`, false},
		{`{"b":2,…}`, `{"a":1,"b":2}`, true},
		{`{…}`, `{"a":1}`, true},
		{`{"b":2,…}`, `{"a":1}`, false},
		{`[1]`, `[1,2]`, false},
		{`[1,…]`, `[1,2]`, true},
		{`[1,…]`, `[2,2]`, false},
		{`{"x":"` + id + `"}`, `{"x":"` + other + `"}`, true},
		{`["` + id + `","` + id + `"]`, `["` + other + `","` + other + `"]`, true},
		{`["` + id + `","` + id + `"]`, `["` + other + `","` + id + `"]`, false},
		{`["` + id + `","` + other + `"]`, `["` + other + `","` + other + `"]`, false},
		{`"no task ` + id + `"`, `"no task ` + other + `"`, true},
		{`"no task ` + id + `"`, `"a task ` + other + `"`, false},
		{`"2026-01-31T12:00:00.000Z"`, `"2027-02-28T11:22:33.444Z"`, true},
		{`"2026-01-31T12:00:00.000Z"`, `"2027-02-28T11:22:33Z"`, false},
		{`{"version":"1"}`, `{"version":"2"}`, true},
		{`{"version":"1"}`, `{"version":2}`, false},
	} {
		page, err := parseJSON(c.page)
		if err != nil {
			t.Fatal(err)
		}
		real, err := parseJSON(c.real)
		if err != nil {
			t.Fatal(err)
		}
		if err := newNames().value("", page, real); (err == nil) != c.same {
			t.Errorf("%s and %s: %v", c.page, c.real, err)
		}
	}
}
