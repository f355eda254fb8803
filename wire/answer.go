package wire

import (
	"errors"
	"math"
	"strings"
)

// What a server says is read for its types and for what a reader cannot do
// without; limits are the server's business, and members of a newer version
// are passed over. The code of these rules is never seen.
var (
	anyTextRule    = textRule{code: CodeInvalidBody, high: math.MaxInt}
	needTextRule   = textRule{code: CodeInvalidBody, high: math.MaxInt, required: true}
	anyIntegerRule = integerRule{code: CodeInvalidBody, low: math.MinInt64, high: math.MaxInt64}
	countRule      = integerRule{code: CodeInvalidBody, high: math.MaxInt64, required: true}
	anyTimeRule    = timeRule{code: CodeInvalidBody, least: math.MinInt64}
)

// parseAnswer reads an answer; the last word of what is the word for it in sentences.
func parseAnswer[A any](what string, data []byte, s *shape, members func(*A, *coder)) (*A, error) {
	o := s.object()
	o.answer = true
	if problem := o.scanAlone(data); problem != "" {
		return nil, errors.New("read " + what + ": " + what[strings.LastIndexByte(what, ' ')+1:] + " " + problem)
	}
	a := new(A)
	members(a, &coder{in: &o, shape: s})
	if o.err != nil {
		return nil, errors.New("read " + what + ": " + o.err.Sentence)
	}
	return a, nil
}

// read is parseAnswer into a value that is there.
func (s *shape) read(what string, data []byte, members func(*coder)) error {
	_, err := parseAnswer(what, data, s, func(_ *struct{}, c *coder) { members(c) })
	return err
}

func (t *Task) overHTTP(c *coder) { t.members(c, PayloadAsString) }

var taskShape = shapeOf(new([]string), new(Task).overHTTP)

// ParseTask reads a task as HTTP answers it: payload is a string that holds
// the JSON. Unknown members are passed over.
func ParseTask(data []byte) (*Task, error) {
	return parseAnswer("task", data, taskShape, (*Task).overHTTP)
}

// claimed is a task as a claim answers it.
type claimed struct {
	Task
	token Token
}

func (t *claimed) members(c *coder) {
	t.Task.members(c, PayloadAsString)
	c.token(`,"leaseToken":`, &t.token, &needTextRule)
}

var claimedShape = shapeOf(new([]string), new(claimed).members)

// ParseClaimed reads a task as a claim answers it, with the token of its
// delivery.
func ParseClaimed(data []byte) (*Task, Token, error) {
	t, err := parseAnswer("claimed task", data, claimedShape, (*claimed).members)
	if err != nil {
		return nil, Token{}, err
	}
	return &t.Task, t.token, nil
}

var recordShape = shapeOf(new([]string), new(ResultRecord).members)

// ParseResultRecord reads a result record. Its result aliases data; unknown
// members are passed over.
func ParseResultRecord(data []byte) (*ResultRecord, error) {
	return parseAnswer("result record", data, recordShape, (*ResultRecord).members)
}

var errorShape = shapeOf(new([]string), new(Error).members)

// ParseError reads the body of a refusal. The second value is not nil when
// data is none, as from a proxy that answers in the server's place.
func ParseError(data []byte) (*Error, error) {
	return parseAnswer("refusal", data, errorShape, (*Error).members)
}
