package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"codeq/internal/yamlfile"
	"codeq/wire"
)

const (
	originDefault = "default"
	originNone    = "not set"
)

// Sources are where settings come from besides their defaults.
type Sources struct {
	// Flags names the settings that the command line gave; their values are in
	// the struct already.
	Flags map[string]bool
	// Env returns the value of a variable of the environment; an empty value counts as
	// not set. nil is an empty environment.
	Env func(name string) string
	// Variables are the names in the environment; with nil, unknown ones are not looked
	// for. Beside are names that begin with CODEQ_, belong to other commands, and are
	// allowed.
	Variables []string
	Beside    []string
	// File is the path of a YAML or JSON file, "" for none.
	File string
}

// Resolved is a table whose values are final.
type Resolved struct {
	rows    []Setting
	origins map[string]string
}

// Resolve fills a pointer to a struct such as Serve from all sources and
// checks all values. The error has one line for each wrong value, which says where that
// value was set.
func Resolve(into any, from Sources) (*Resolved, error) {
	file, err := readFile(from.File)
	if err != nil {
		return nil, err
	}
	r := &Resolved{rows: Table(into), origins: map[string]string{}}
	var wrong []error
	for i := range r.rows {
		if err := r.resolve(&r.rows[i], &from, file); err != nil {
			wrong = append(wrong, err)
		}
	}
	wrong = append(wrong, r.unknownKeys(from.File, file)...)
	wrong = append(wrong, r.unknownVariables(&from)...)
	// A rule between two settings is checked only when every single value is good.
	if pairs, ok := into.(interface {
		Check(origin func(string) string) error
	}); ok && len(wrong) == 0 {
		wrong = append(wrong, pairs.Check(r.Origin))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return r, nil
}

// Origin says where the value of a setting was set: the flag, the variable,
// file:line, "default", or "not set".
func (r *Resolved) Origin(name string) string { return r.origins[name] }

// ChangedBy sets the origin of a setting whose value the caller has changed in the
// struct.
func (r *Resolved) ChangedBy(name, origin string) { r.origins[name] = origin }

// resolve gives one setting its value.
func (r *Resolved) resolve(s *Setting, from *Sources, file map[string]yamlfile.Field) error {
	text, origin, where := s.Default, originDefault, ""
	field, inFile := file[s.Name]
	env := ""
	if from.Env != nil {
		env = from.Env(s.Env())
	}
	switch {
	case from.Flags[s.Name]:
		r.origins[s.Name] = s.Flag()
		return s.checkParsed(s.Flag(), s.value())
	case env != "":
		text, origin, where = env, s.Env(), s.Env()
	case inFile:
		origin = fmt.Sprintf("%s:%d", from.File, field.Line)
		where = origin + ": " + s.Name
		var err error
		if text, err = s.textOf(field.Value); err != nil {
			return fmt.Errorf("%s %w", where, err)
		}
	case s.Default == "":
		r.origins[s.Name] = originNone
		s.field.SetZero()
		return nil
	}
	r.origins[s.Name] = origin
	v, err := s.read(text)
	if err != nil {
		return fmt.Errorf("%s %w", where, err)
	}
	s.field.Set(reflect.ValueOf(v))
	return nil
}

// textOf is a value of a file in the form of a flag. The error is the end of a sentence;
// the caller puts file and line in front of it.
func (s *Setting) textOf(v yamlfile.Value) (string, error) {
	if v.Kind == yamlfile.Scalar {
		return v.Text, nil
	}
	if v.Kind != yamlfile.List || s.field.Kind() != reflect.Slice {
		return "", fmt.Errorf("must be a single value, got %v", v.Kind)
	}
	texts := make([]string, 0, len(v.Items))
	for _, item := range v.Items {
		if item.Kind != yamlfile.Scalar {
			return "", fmt.Errorf("must be a list of single values, got %v in it", item.Kind)
		}
		texts = append(texts, item.Text)
	}
	return strings.Join(texts, ","), nil
}

// checkParsed checks the value of a flag, which the command line has parsed.
func (s *Setting) checkParsed(where string, v any) error {
	err := s.check(v)
	if text, ok := v.(string); ok && err == nil {
		_, err = s.read(text)
	}
	if err != nil {
		return fmt.Errorf("%s %w", where, err)
	}
	return nil
}

// readFile reads the settings of a file, by name.
func readFile(path string) (map[string]yamlfile.Field, error) {
	if path == "" {
		return nil, nil
	}
	text, err := yamlfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	v, err := yamlfile.Parse(path, text)
	if err != nil {
		return nil, err
	}
	if v.Kind != yamlfile.Map && v.Kind != yamlfile.Null {
		return nil, &yamlfile.Error{File: path, Line: v.Line, Sentence: fmt.Sprintf(
			"the file must be a map of settings like \"listen: 127.0.0.1:8080\", got %v", v.Kind)}
	}
	fields := map[string]yamlfile.Field{}
	for _, f := range v.Fields {
		fields[f.Name] = f
	}
	return fields, nil
}

// unknownKeys is an error for each key of a file that is no setting, in the order of
// lines.
func (r *Resolved) unknownKeys(path string, file map[string]yamlfile.Field) []error {
	known := make([]string, len(r.rows))
	for i := range r.rows {
		known[i] = r.rows[i].Name
	}
	inOrder := func(a, b yamlfile.Field) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name)) }
	var found []error
	for _, f := range slices.SortedFunc(maps.Values(file), inOrder) {
		if !slices.Contains(known, f.Name) {
			found = append(found, &yamlfile.Error{File: path, Line: f.Line, Sentence: wire.NotKnown("", f.Name, known)})
		}
	}
	return found
}
