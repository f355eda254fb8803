package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"codeq/wire"
)

const (
	// MaxBytes is the most a file may have.
	MaxBytes = 1 << 20
	// maxDepth is how deep lists and maps may lie in one another.
	maxDepth = 16
	// maxOpen bounds brackets that are open at once and entries that begin on
	// one line, counted without regard to quotes: the parser calls itself for
	// each.
	maxOpen = 64
)

// pipeWaits is how long the other end of a pipe may take to write what is read.
const pipeWaits = 5 * time.Second

// Read returns the bytes of a file of at most MaxBytes. It does not wait for
// anybody to open the other end of a pipe, and not long for what comes out of it.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	// It was only read.
	defer func() { _ = f.Close() }()
	if err := f.SetReadDeadline(time.Now().Add(pipeWaits)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, fmt.Errorf("open file: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if len(data) > MaxBytes {
		return nil, &Error{File: path, Sentence: fmt.Sprintf("the file is over the limit of %d bytes", MaxBytes)}
	}
	return data, nil
}

// Parse reads the one document of a file, YAML or JSON. A file without one is
// Null on line 0. An error is an *Error; file is only for it.
func Parse(file string, data []byte) (v Value, err error) {
	data, err = checkText(file, data)
	if err != nil {
		return Value{}, err
	}
	defer func() {
		// The parser is not ours, and a person's slip in a file that is read
		// while the server runs must not end it.
		if p := recover(); p != nil {
			v, err = Value{}, &Error{File: file, Sentence: "the file is no YAML that can be read"}
		}
	}()
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Value{}, syntaxError(file, err)
	}
	r := reader{file: file}
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if v.Line != 0 {
			return Value{}, r.at(doc.Body, "a second document begins; a file has one")
		}
		if v, err = r.value(doc.Body, 0); err != nil {
			return Value{}, err
		}
	}
	return v, nil
}

// checkText is the text without a byte order mark. It refuses what would not be
// text, or would make the parser call itself too deep.
func checkText(file string, data []byte) ([]byte, error) {
	if len(data) > MaxBytes {
		return nil, &Error{File: file, Sentence: fmt.Sprintf("the file is over the limit of %d bytes", MaxBytes)}
	}
	plain, err := wire.PlainText(data)
	if err == nil {
		err = wire.CheckLineEnds(plain)
	}
	if err != nil {
		return nil, &Error{File: file, Sentence: err.Error()}
	}
	line, open := 0, 0
	for text := range strings.Lines(string(plain)) {
		line++
		if !utf8.ValidString(text) {
			return nil, &Error{File: file, Line: line, Sentence: "not UTF-8 text"}
		}
		if deepest := deepestOf(text, &open); deepest > maxOpen {
			return nil, &Error{File: file, Line: line, Sentence: "lists or maps lie too deep in one another"}
		}
	}
	return plain, nil
}

// deepestOf is the most brackets that are open at once in a line, or the
// entries that it begins if those are more.
func deepestOf(line string, open *int) int {
	deepest, entries := *open, 0
	for i := range len(line) {
		switch line[i] {
		case '[', '{':
			*open++
			deepest = max(deepest, *open)
		case ']', '}':
			*open = max(0, *open-1)
		case '-', '?', ':':
			if i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t') {
				entries++
			}
		}
	}
	return max(deepest, entries)
}

// syntaxError keeps of a parser's error what does not quote the file.
func syntaxError(file string, err error) error {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		return &Error{File: file, Sentence: "the file is no YAML that can be read"}
	}
	sentence := syntax.Message
	if strings.HasPrefix(sentence, "mapping key ") {
		sentence = "this name is given twice in one map"
	}
	return &Error{File: file, Line: syntax.Token.Position.Line, Sentence: "not YAML: " + sentence}
}

type reader struct{ file string }

func (r *reader) at(n ast.Node, sentence string) error {
	return &Error{File: r.file, Line: lineOf(n), Sentence: sentence}
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// value turns a node of the parser into a value.
func (r *reader) value(n ast.Node, depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, r.at(n, "lists or maps lie too deep in one another")
	}
	v := Value{Line: lineOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
		return v, nil
	case *ast.StringNode:
		v.Kind, v.Text = Scalar, n.Value
	case *ast.LiteralNode:
		v.Kind, v.Text = Scalar, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		v.Kind, v.Text = Scalar, strings.TrimSpace(n.GetToken().Value)
	case *ast.SequenceNode:
		return r.list(n, depth)
	case *ast.MappingNode:
		return r.fields(v, n.Values, depth)
	case *ast.MappingValueNode:
		return r.fields(v, []*ast.MappingValueNode{n}, depth)
	default:
		return Value{}, r.at(n, "anchors, aliases, tags and merges are not read; write the value itself")
	}
	return v, nil
}

func (r *reader) list(n *ast.SequenceNode, depth int) (Value, error) {
	v := Value{Kind: List, Line: lineOf(n)}
	for _, item := range n.Values {
		one, err := r.value(item, depth+1)
		if err != nil {
			return Value{}, err
		}
		v.Items = append(v.Items, one)
	}
	return v, nil
}

func (r *reader) fields(v Value, pairs []*ast.MappingValueNode, depth int) (Value, error) {
	v.Kind = Map
	seen := map[string]bool{}
	for i, pair := range pairs {
		name, ok := nameOf(pair.Key)
		if !ok {
			return Value{}, r.at(pair.Key, "a name must be a plain word")
		}
		line := lineOf(pair.Key)
		if seen[name] {
			return Value{}, &Error{File: r.file, Line: line, Sentence: "this name is given twice in one map"}
		}
		seen[name] = true
		if i == 0 {
			v.Line = line // the parser puts a block map at its colon
		}
		inner, err := r.value(pair.Value, depth+1)
		if err != nil {
			return Value{}, err
		}
		if inner.Kind == Null {
			inner.Line = line // the parser may put a missing value anywhere
		}
		v.Fields = append(v.Fields, Field{Name: name, Line: line, Value: inner})
	}
	return v, nil
}

// nameOf is the text of a key that is one word.
func nameOf(key ast.MapKeyNode) (string, bool) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		t := k.GetToken()
		return strings.TrimSpace(t.Value), t.Type != token.MappingKeyType
	}
	return "", false
}
