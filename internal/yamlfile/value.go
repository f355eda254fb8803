package yamlfile

import "fmt"

// Kind is what a value is.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Scalar
	List
	Map
)

// String is the kind in the words of an error.
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Scalar:
		return "a single value"
	case List:
		return "a list"
	case Map:
		return "a map of names to values"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Value is one value of a file. It is not changed once it was read.
type Value struct {
	Kind Kind
	// Line counts from 1; 0 is an empty file.
	Line int
	// Text is a scalar as it was written, quotes and escapes undone.
	Text string
	// Items are those of a list.
	Items []Value
	// Fields are those of a map, in the order of the file; no name comes twice.
	Fields []Field
}

// Field is one name of a map with its value.
type Field struct {
	Name  string
	Line  int
	Value Value
}

// Error says what is wrong with a file, and where.
type Error struct {
	File     string
	Line     int // 0: the file as a whole
	Sentence string
}

// Error is "file:line: sentence".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Sentence
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Sentence)
}
