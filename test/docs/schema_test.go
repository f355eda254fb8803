package docs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeq/internal/yamlfile"
)

// spec is openapi.yaml or asyncapi.yaml. It knows the part of JSON Schema that the file uses
// and refuses the rest, so that nothing in the file goes unchecked.
type spec struct{ root yamlfile.Value }

func readSpec(t *testing.T, file string) *spec {
	t.Helper()
	root, err := yamlfile.Parse(file, []byte(readPage(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	return &spec{root}
}

// get is what lies under a name, following a $ref.
func (s *spec) get(v yamlfile.Value, name string) (yamlfile.Value, bool) {
	for _, f := range v.Fields {
		if f.Name == name {
			return s.follow(f.Value), true
		}
	}
	return yamlfile.Value{}, false
}

// path is what lies under several names, nothing if one is not there.
func (s *spec) path(v yamlfile.Value, names ...string) yamlfile.Value {
	for _, name := range names {
		v, _ = s.get(v, name)
	}
	return v
}

func (s *spec) text(v yamlfile.Value, name string) string { return s.path(v, name).Text }

// follow is what a $ref leads to. A description beside it is for people.
func (s *spec) follow(v yamlfile.Value) yamlfile.Value {
	for _, f := range v.Fields {
		if f.Name != "$ref" {
			continue
		}
		names := strings.Split(strings.TrimPrefix(f.Value.Text, "#/"), "/")
		target := s.path(s.root, names...)
		if target.Line == 0 {
			panic(fmt.Sprintf("openapi.yaml:%d: %s leads nowhere", f.Line, f.Value.Text))
		}
		return target
	}
	return v
}

// keywords are what a schema may hold; those that are true say something about
// values.
var keywords = map[string]bool{
	"type": true, "required": true, "properties": true, "additionalProperties": true, "items": true,
	"enum": true, "const": true, "pattern": true, "oneOf": true, "minimum": true, "maximum": true,
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true,
	"description": false, "default": false, "format": false, "contentMediaType": false, "$ref": false,
}

// check holds a value, read with numbers as they are written, against a
// schema. A member that the schema does not name is an error unless it says
// additionalProperties, so that what the server adds is added to the file too.
func (s *spec) check(at string, schema yamlfile.Value, value any) error {
	schema = s.follow(schema)
	for _, f := range schema.Fields {
		judged, known := keywords[f.Name]
		if !known {
			return fmt.Errorf("openapi.yaml:%d: the keyword %s is not checked by anything", f.Line, f.Name)
		}
		if !judged {
			continue
		}
		if err := s.keyword(at, schema, f, value); err != nil {
			return fmt.Errorf("%w (openapi.yaml:%d)", err, f.Line)
		}
	}
	return nil
}

func (s *spec) keyword(at string, schema yamlfile.Value, f yamlfile.Field, value any) error {
	switch f.Name {
	case "type":
		kind := kindOf(value)
		if f.Value.Text != kind && !slices.ContainsFunc(f.Value.Items, func(v yamlfile.Value) bool { return v.Text == kind }) {
			return fmt.Errorf("%s is of type %s", at, kind)
		}
	case "const":
		if value != f.Value.Text {
			return fmt.Errorf("%s is %v", at, value)
		}
	case "enum":
		if !slices.ContainsFunc(f.Value.Items, func(v yamlfile.Value) bool { return v.Text == value }) {
			return fmt.Errorf("%s is %v, none of the list", at, value)
		}
	case "oneOf":
		return s.oneOf(at, f.Value.Items, value)
	}
	switch value := value.(type) {
	case map[string]any:
		return s.object(at, schema, f, value)
	case []any:
		return s.list(at, f, value)
	case string:
		return checkText(at, f, value)
	case json.Number:
		return checkNumber(at, f, value)
	}
	return nil
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number:
		if _, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return "integer"
		}
	}
	return "number"
}

func (s *spec) oneOf(at string, schemas []yamlfile.Value, value any) error {
	fitting := 0
	var first error
	for _, schema := range schemas {
		if err := s.check(at, schema, value); err == nil {
			fitting++
		} else if first == nil {
			first = err
		}
	}
	if fitting != 1 {
		return fmt.Errorf("%s fits %d of the schemas: %w", at, fitting, first)
	}
	return nil
}

func (s *spec) object(at string, schema yamlfile.Value, f yamlfile.Field, value map[string]any) error {
	switch f.Name {
	case "required":
		for _, name := range f.Value.Items {
			if _, ok := value[name.Text]; !ok {
				return fmt.Errorf("%s has no %s", at, name.Text)
			}
		}
	case "properties":
		open := s.text(schema, "additionalProperties") == "true"
		for name, member := range value {
			property, ok := s.get(f.Value, name)
			if !ok && !open {
				return fmt.Errorf("%s has %s, which openapi.yaml does not know", at, name)
			}
			if err := s.check(at+"."+name, property, member); err != nil {
				return err
			}
		}
	case "additionalProperties":
		if _, described := s.get(schema, "properties"); f.Value.Text == "false" && !described && len(value) > 0 {
			return fmt.Errorf("%s has members", at)
		}
	}
	return nil
}

func (s *spec) list(at string, f yamlfile.Field, value []any) error {
	switch f.Name {
	case "items":
		for i, item := range value {
			if err := s.check(fmt.Sprintf("%s[%d]", at, i), f.Value, item); err != nil {
				return err
			}
		}
	case "minItems", "maxItems":
		return checkBound(at, f, int64(len(value)))
	}
	return nil
}

func checkText(at string, f yamlfile.Field, value string) error {
	switch f.Name {
	case "pattern":
		if !regexp.MustCompile(f.Value.Text).MatchString(value) {
			return fmt.Errorf("%s is %q", at, value)
		}
	case "minLength", "maxLength":
		return checkBound(at, f, int64(len([]rune(value))))
	}
	return nil
}

func checkNumber(at string, f yamlfile.Field, value json.Number) error {
	if f.Name != "minimum" && f.Name != "maximum" {
		return nil
	}
	n, err := value.Int64()
	if err != nil {
		return fmt.Errorf("%s is %s, and only integers have bounds here: %w", at, value, err)
	}
	return checkBound(at, f, n)
}

func checkBound(at string, f yamlfile.Field, n int64) error {
	bound, err := strconv.ParseInt(f.Value.Text, 10, 64)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	if strings.HasPrefix(f.Name, "min") && n < bound || strings.HasPrefix(f.Name, "max") && n > bound {
		return fmt.Errorf("%s is %d, beyond the %s", at, n, f.Name)
	}
	return nil
}

func TestSchemasRefuseWhatTheyDoNotDescribe(t *testing.T) {
	s := readSpec(t, "openapi.yaml")
	for _, c := range []struct {
		schema, value string
		good          bool
	}{
		{"Error", `{"error":"no","code":"not_found","retryable":false}`, true},
		{"Error", `{"error":"no","code":"not_found","retryable":"false"}`, false},
		{"Error", `{"error":"no","code":"not_found"}`, false},
		{"Error", `{"error":"","code":"not_found","retryable":false}`, false},
		{"Error", `{"error":"no","code":"Not Found","retryable":false}`, false},
		{"Error", `{"error":"no","code":"not_found","retryable":false,"more":1}`, false},
		{"Error", `{"error":"no","code":"not_found","retryable":false,"status":"GONE"}`, false},
		{"Error", `{"error":"no","code":"not_found","retryable":false,"retryAfterSeconds":0}`, false},
		{"Error", `[]`, false},
		{"NewTask", `{"command":"a","payload":{"any":["thing"]},"priority":null}`, true},
		{"NewTask", `{"command":"a b","payload":1}`, false},
		{"NewTask", `{"command":"a","payload":1,"priority":10}`, false},
		{"NewTask", `{"command":"a","payload":1,"priority":1.5}`, false},
		{"NewTask", `{"command":"a"}`, false},
		{"NewTask", `{"command":"a","payload":1,"delay":5}`, false},
	} {
		value, err := parseJSON(c.value)
		if err != nil {
			t.Fatal(err)
		}
		err = s.check("", s.path(s.root, "components", "schemas", c.schema), value)
		if (err == nil) != c.good {
			t.Errorf("%s %s: %v", c.schema, c.value, err)
		}
	}
}
