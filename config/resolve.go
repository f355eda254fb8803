package config

import (
	"errors"
	"fmt"
	"reflect"
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
	// Env looks a variable of the environment up; an empty one counts as not
	// set. nil is an empty environment.
	Env func(name string) string
	// Variables names those of the environment, nil for no look at what else is
	// there; Beside are such as begin like those of settings and are none.
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
// checks everything. The error joins all that is wrong, a line each, and says
// where it was set.
func Resolve(into any, from Sources) (*Resolved, error) {
	file, err := readFile(from.File)
	if err != nil {
		return nil, err
	}
	r := &Resolved{rows: Table(into), origins: map[string]string{}}
	var wrong []error
	for i := range r.rows {
		if err := r.settle(&r.rows[i], &from, file); err != nil {
			wrong = append(wrong, err)
		}
	}
	wrong = append(wrong, r.unknown(from.File, file)...)
	wrong = append(wrong, r.strangers(&from)...)
	// Rules that join settings are about values that are good by themselves.
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

// Origin says where a setting has its value from: the flag, the variable,
// file:line, "default", or "not set".
func (r *Resolved) Origin(name string) string { return r.origins[name] }

// ChangedBy says that a setting has its value from somewhere that is no source of
// settings, which the caller has put into the struct.
func (r *Resolved) ChangedBy(name, origin string) { r.origins[name] = origin }

// settle gives one setting its value.
func (r *Resolved) settle(s *Setting, from *Sources, file map[string]yamlfile.Field) error {
	text, origin, where := s.Default, originDefault, ""
	field, inFile := file[s.Name]
	env := ""
	if from.Env != nil {
		env = from.Env(s.Env())
	}
	switch {
	case from.Flags[s.Name]:
		r.origins[s.Name] = s.Flag()
		return s.judge(s.Flag(), s.value())
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

// textOf is a value of a file as a flag would have it. The error ends a
// sentence that begins with where the value stands.
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

// judge checks a value that was parsed elsewhere.
func (s *Setting) judge(where string, v any) error {
	err := s.check(v)
	if text, ok := v.(string); ok && err == nil {
		_, err = s.read(text)
	}
	if err != nil {
		return fmt.Errorf("%s %w", where, err)
	}
	return nil
}

// readFile is the settings of a file by name.
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

// unknown finds what a file sets that is no setting, in the order of lines.
func (r *Resolved) unknown(path string, file map[string]yamlfile.Field) []error {
	left := make(map[string]yamlfile.Field, len(file))
	for name, f := range file {
		left[name] = f
	}
	known := make([]string, 0, len(r.rows))
	for i := range r.rows {
		delete(left, r.rows[i].Name)
		known = append(known, r.rows[i].Name)
	}
	var found []error
	for len(left) > 0 {
		first := yamlfile.Field{}
		for _, f := range left {
			if first.Line == 0 || f.Line < first.Line || f.Line == first.Line && f.Name < first.Name {
				first = f
			}
		}
		delete(left, first.Name)
		found = append(found, &yamlfile.Error{File: path, Line: first.Line, Sentence: wire.NotKnown("", first.Name, known)})
	}
	return found
}
