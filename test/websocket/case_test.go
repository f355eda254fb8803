package websocket

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// testCase is one section of the table.
type testCase struct {
	name, what string
	send       []sending
	want       []frame // what the client must send, in order, without its close frame
	code       int     // of the close frame that the client must send; noCode without a code, noClose for no frame
	ends       bool    // the client ends the connection, and not the peer
}

const (
	noCode  = 0
	noClose = -1
)

// sending is a frame and how it is written.
type sending struct {
	bytes []byte
	chop  int // bytes in a write; 0 is one write
	cut   bool
}

type frame struct {
	opcode  byte
	payload []byte
}

func (f frame) String() string {
	if len(f.payload) > 60 {
		return fmt.Sprintf("opcode %d %.60q… %d bytes", f.opcode, f.payload, len(f.payload))
	}
	return fmt.Sprintf("opcode %d %q", f.opcode, f.payload)
}

var opcodes = map[string]byte{"cont": 0, "text": 1, "binary": 2, "close": opClose, "ping": 9, "pong": 10}

const opClose = 8

// readCases reads the table.
func readCases(t *testing.T) (cases []*testCase) {
	t.Helper()
	table, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(table), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if title, ok := strings.CutPrefix(line, "== "); ok {
			name, what, _ := strings.Cut(title, " ")
			cases = append(cases, &testCase{name: name, what: what, code: 1000})
			continue
		}
		if err := cases[len(cases)-1].add(line); err != nil {
			t.Fatalf("cases.txt:%d: %v", i+1, err)
		}
	}
	return cases
}

// add reads one line of a case.
func (c *testCase) add(line string) error {
	times := 1
	if rest, ok := strings.CutPrefix(line, "repeat "); ok {
		n, what, _ := strings.Cut(rest, " ")
		count, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		times, line = count, what
	}
	kind, rest, _ := strings.Cut(line, " ")
	if kind == "!" {
		c.ends = true
		if rest == "-" {
			c.code = noClose
			return nil
		}
		code, err := strconv.Atoi(rest)
		c.code = code
		return err
	}
	name, rest, _ := strings.Cut(rest, " ")
	f, options, err := parseFrame(name, rest)
	if err != nil {
		return err
	}
	if kind == "<" {
		for range times {
			c.want = append(c.want, f)
		}
		return nil
	}
	s, err := f.sending(options)
	for range times {
		c.send = append(c.send, s)
	}
	return err
}

// parseFrame reads an opcode, a payload, and what is behind them.
func parseFrame(name, rest string) (f frame, options []string, err error) {
	opcode, known := opcodes[name]
	if !known {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "op"))
		if err != nil {
			return f, nil, fmt.Errorf("%s is no opcode", name)
		}
		opcode = byte(n)
	}
	f.opcode = opcode
	if code, after, _ := strings.Cut(rest, " "); opcode == opClose && after != "" {
		if n, err := strconv.ParseUint(code, 10, 16); err == nil {
			f.payload, rest = binary.BigEndian.AppendUint16(nil, uint16(n)), after
		}
	}
	payload, rest, err := parsePayload(rest)
	f.payload = append(f.payload, payload...)
	return f, strings.Fields(rest), err
}

// parsePayload reads "text", N*"text" or hex:… at the beginning of a line.
func parsePayload(text string) (payload []byte, rest string, err error) {
	if digits, ok := strings.CutPrefix(text, "hex:"); ok {
		digits, rest, _ = strings.Cut(digits, " ")
		payload, err = hex.DecodeString(digits)
		return payload, rest, err
	}
	times := 1
	if n, after, ok := strings.Cut(text, "*"); ok && !strings.Contains(n, `"`) {
		if times, err = strconv.Atoi(n); err != nil {
			return nil, "", err
		}
		text = after
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return nil, "", fmt.Errorf("a payload should begin at %q", text)
	}
	one, err := strconv.Unquote(quoted)
	return bytes.Repeat([]byte(one), times), text[len(quoted):], err
}

// sending is the frame as the options want it.
func (f frame) sending(options []string) (s sending, err error) {
	first, masked, width, cut := 0x80|f.opcode, byte(0), 0, 0
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		n := 0
		if value != "" {
			if n, err = strconv.Atoi(value); err != nil {
				return s, err
			}
		}
		switch name {
		case "more":
			first &^= 0x80
		case "rsv":
			first |= byte(n) << 4
		case "masked":
			masked = 0x80
		case "length":
			width = n
		case "chop":
			s.chop = n
		case "cut":
			cut = n
		default:
			return s, fmt.Errorf("%s is no option", option)
		}
	}
	s.bytes = append(s.bytes, first)
	switch n := len(f.payload); {
	case n < 126 && width == 0:
		s.bytes = append(s.bytes, masked|byte(n))
	case n < 1<<16 && width < 8:
		s.bytes = binary.BigEndian.AppendUint16(append(s.bytes, masked|126), uint16(n))
	default:
		s.bytes = binary.BigEndian.AppendUint64(append(s.bytes, masked|127), uint64(n))
	}
	if masked != 0 {
		s.bytes = append(s.bytes, 0, 0, 0, 0)
	}
	s.bytes = append(s.bytes, f.payload...)
	if cut > 0 {
		s.bytes, s.cut = s.bytes[:cut], true
	}
	return s, nil
}
