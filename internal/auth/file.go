package auth

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codeq/internal/yamlfile"
	"codeq/wire"
)

// ParseEntries reads the text of a token file, YAML or JSON: a list of maps. The error is
// a *yamlfile.Error that names file and line and contains neither a token nor a digest.
func ParseEntries(file string, data []byte) ([]Entry, error) {
	v, err := yamlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	if v.Kind != yamlfile.List {
		return nil, &yamlfile.Error{File: file, Line: v.Line, Sentence: "the file must be a list of tokens, [] for none; " +
			"\"codeq token new\" writes an entry"}
	}
	r := entryReader{file: file, names: map[string]int{}, credentials: map[string]int{}}
	entries := make([]Entry, 0, len(v.Items))
	for _, item := range v.Items {
		e, err := r.entry(item)
		if err != nil {
			return nil, err
		}
		entries = append(entries, *e)
	}
	return entries, nil
}

// entryReader reads the entries of one file. names and credentials have the line of each
// name, and of each digest and certificate, that was read.
type entryReader struct {
	file               string
	names, credentials map[string]int
}

func (r *entryReader) at(line int, format string, args ...any) error {
	return &yamlfile.Error{File: r.file, Line: line, Sentence: fmt.Sprintf(format, args...)}
}

func (r *entryReader) entry(v yamlfile.Value) (*Entry, error) {
	if v.Kind != yamlfile.Map {
		return nil, r.at(v.Line, "a token must be a map with name, sha256 or certificate, tenant, subject, scopes and commands, got %v", v.Kind)
	}
	e := &Entry{}
	for _, f := range v.Fields {
		if err := r.field(e, f); err != nil {
			return nil, err
		}
	}
	if sentence := missing(e); sentence != "" {
		return nil, r.at(v.Line, "%s", sentence)
	}
	credential := "sha256"
	if e.Certificate != "" {
		credential = "certificate"
	}
	for _, once := range []struct {
		what string
		seen map[string]int
		text string
	}{{"name", r.names, e.Name}, {credential, r.credentials, cmp.Or(e.SHA256, e.Certificate)}} {
		if line, twice := once.seen[once.text]; twice {
			return nil, r.at(v.Line, "%s is that of the token on line %d already; no two tokens may share one", once.what, line)
		}
		once.seen[once.text] = v.Line
	}
	return e, nil
}

// missing is an error sentence about a field that the entry needs and does not have, ""
// without one.
func missing(e *Entry) string {
	for _, f := range []struct {
		name string
		have bool
	}{
		{"name", e.Name != ""}, {"sha256 and no certificate", e.SHA256 != "" || e.Certificate != ""}, {"tenant", e.Tenant != ""},
		{"subject", e.Subject != ""}, {"scopes", e.Scopes != nil},
	} {
		if !f.have {
			return "this token has no " + f.name
		}
	}
	if e.SHA256 != "" && e.Certificate != "" {
		return "this token has sha256 and certificate: an entry is for a token or for a certificate"
	}
	needsCommands := func(scope string) bool { return scope != ScopeAdmin && scope != ScopeAdminAll && scope != ScopeRead }
	if slices.ContainsFunc(ExpandScopes(e.Scopes), needsCommands) && e.Commands == nil {
		return "this token has no commands: all scopes but " + ScopeAdmin + ", " + ScopeAdminAll + " and " + ScopeRead + " need their names, or [\"*\"] for all"
	}
	return ""
}

// entryFields are the names of the fields of an entry.
var entryFields = []string{"name", "sha256", "certificate", "tenant", "subject", "scopes", "commands", "expiresAt"}

func (r *entryReader) field(e *Entry, f yamlfile.Field) (err error) {
	switch f.Name {
	case "name":
		e.Name, err = r.text(f, maxNameBytes)
	case "sha256":
		e.SHA256, err = r.digest(f)
	case "certificate":
		e.Certificate, err = r.text(f, maxSANBytes)
	case "tenant":
		e.Tenant, err = r.text(f, wire.MaxTenantBytes)
	case "subject":
		e.Subject, err = r.text(f, maxSubjectBytes)
	case "scopes":
		e.Scopes, err = r.scopes(f)
	case "commands":
		e.Commands, err = r.commands(f)
	case "expiresAt":
		e.ExpiresAtMs, err = r.moment(f)
	default:
		if wire.Nearest(f.Name, entryFields) == "" {
			// The error does not show the name: it could be a token in the wrong place.
			return r.at(f.Line, "a token has only %s", strings.Join(entryFields, ", "))
		}
		return r.at(f.Line, "%s", wire.NotKnown("", f.Name, entryFields))
	}
	return err
}

func (r *entryReader) text(f yamlfile.Field, maxBytes int) (string, error) {
	if f.Value.Kind != yamlfile.Scalar {
		return "", r.at(f.Line, "%s must be a text, got %v", f.Name, f.Value.Kind)
	}
	if problem := wire.NameProblem(f.Value.Text, maxBytes); problem != "" {
		return "", r.at(f.Line, "%s %s", f.Name, problem)
	}
	return f.Value.Text, nil
}

func (r *entryReader) digest(f yamlfile.Field) (string, error) {
	text := strings.ToLower(f.Value.Text)
	d, err := hex.DecodeString(text)
	switch {
	case strings.HasPrefix(f.Value.Text, TokenPrefix):
		return "", r.at(f.Line, "sha256 holds a token itself; write its SHA-256 in its place, and make a new token, because this one was in a file")
	case f.Value.Kind != yamlfile.Scalar || err != nil || len(d) != len(digest{}):
		return "", r.at(f.Line, "sha256 must be the SHA-256 of the token in %d hexadecimal digits", 2*len(digest{}))
	}
	return text, nil
}

// list reads a list of texts, of which no two are equal.
func (r *entryReader) list(f yamlfile.Field) ([]string, error) {
	if f.Value.Kind != yamlfile.List {
		return nil, r.at(f.Line, "%s must be a list in brackets, got %v", f.Name, f.Value.Kind)
	}
	list := []string{}
	for _, item := range f.Value.Items {
		if item.Kind != yamlfile.Scalar {
			return nil, r.at(item.Line, "%s must be a list of names, got %v in it", f.Name, item.Kind)
		}
		list = append(list, item.Text)
	}
	slices.Sort(list)
	if len(slices.Compact(slices.Clone(list))) < len(list) {
		return nil, r.at(f.Line, "%s names something twice", f.Name)
	}
	return list, nil
}

func (r *entryReader) scopes(f yamlfile.Field) ([]string, error) {
	list, err := r.list(f)
	if err != nil {
		return nil, err
	}
	known := append(scopeGroups(), Scopes()...)
	for _, scope := range list {
		if !slices.Contains(known, scope) {
			return nil, r.at(f.Line, "scopes must be among %s, got %.30q", strings.Join(known, ", "), scope)
		}
	}
	if len(list) == 0 {
		return nil, r.at(f.Line, "scopes must name at least one of %s", strings.Join(known, ", "))
	}
	return list, nil
}

func (r *entryReader) commands(f yamlfile.Field) ([]string, error) {
	list, err := r.list(f)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 && slices.Contains(list, wire.AllCommands) {
		return nil, r.at(f.Line, "commands has %q, which is all of them, and names beside it", wire.AllCommands)
	}
	if problem := CommandsProblem(list); problem != "" {
		return nil, r.at(f.Line, "commands %s", problem)
	}
	return list, nil
}

// CommandsProblem says what is wrong with the commands of a credential, "" for nothing. The text
// is the end of a sentence.
func CommandsProblem(list []string) string {
	if len(list) > maxCommands {
		return fmt.Sprintf("has %d names, the limit is %d", len(list), maxCommands)
	}
	for _, command := range list {
		if refusal := wire.CheckCommand(strings.TrimSuffix(command, ".*")); refusal != nil && command != wire.AllCommands {
			return "must be names of commands, prefixes like build.*, or *: " + refusal.Sentence
		}
	}
	return ""
}

func (r *entryReader) moment(f yamlfile.Field) (int64, error) {
	ms, ok := wire.ParseTimeMs(f.Value.Text)
	if !ok || ms <= 0 {
		return 0, r.at(f.Line, "expiresAt must be a time like 2031-12-24T18:00:00Z")
	}
	return ms, nil
}

// AppendToFile adds an entry at the end of a token file. A file that does not exist is
// made, readable for its owner only. A new file replaces the old one in one step, so a
// server that watches it never reads half an entry; a lock of the directory makes two
// calls at the same time add one after the other. first is called last before that step;
// if it fails, the file stays as it was.
func AppendToFile(file string, e *Entry, first func() error) (err error) {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	unlock, err := lockDirectory(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("lock directory: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	text, err := yamlfile.Read(file)
	mode := fs.FileMode(0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = []byte("# Tokens of codeq, one entry each. A token itself is in no file; its SHA-256 is.\n")
	case err != nil:
		return err
	default:
		if _, err := ParseEntries(file, text); err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("look at file: %w", err)
		}
		mode = info.Mode().Perm()
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	longer := e.AppendYAML(text)
	if _, err := ParseEntries(file, longer); err != nil {
		return fmt.Errorf("the entry can not be put at the end of the file; paste it by hand: %w", err)
	}
	return replaceFile(file, longer, mode, first)
}

// replaceFile writes and syncs a new file beside the old one and renames it over the old
// one, unless first fails. Unlocking the directory makes the rename durable.
func replaceFile(file string, text []byte, mode fs.FileMode, first func() error) error {
	dir := filepath.Dir(file)
	f, err := os.CreateTemp(dir, ".tokens-*")
	if err != nil {
		return fmt.Errorf("make new file: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = first()
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replace file: %w", err), os.Remove(f.Name()))
	}
	return nil
}
