package loadtest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strconv"

	"codeq/wire"
)

// frame is what a generator wants of a server's frame. The slices alias the
// message. raw is the whole object.
type frame struct {
	kind   []byte
	raw    []byte
	ref    int64
	taskID []byte // of ok
	token  []byte
	// of task
	id, payload []byte
}

var errNoFrames = errors.New("read server message: not a list of frames")

// scanMessage calls visit for each frame of a message of a server. It trusts
// the server to speak JSON and looks only at the members in frame, which costs
// a fraction of wire.ParseServerMessage and nothing on the heap.
func scanMessage(data []byte, f *frame, visit func(*frame) error) error {
	s := scan{data: data}
	if s.next() != '[' {
		return errNoFrames
	}
	s.pos++
	if s.next() == ']' {
		return nil
	}
	for {
		*f = frame{}
		start := s.pos
		if !s.object(func(name []byte) bool { return s.frameMember(name, f) }) {
			return errNoFrames
		}
		f.raw = bytes.TrimLeft(data[start:s.pos], " \t\r\n")
		if err := visit(f); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.pos++
		case ']':
			return nil
		default:
			return errNoFrames
		}
	}
}

// scan walks over JSON text. Its methods report false where the text is cut
// short or no JSON at all; they do not check all of its grammar.
type scan struct {
	data []byte
	pos  int
}

// next passes over space and returns the byte there, 0 at the end.
func (s *scan) next() byte {
	for s.pos < len(s.data) {
		if c := s.data[s.pos]; c > ' ' {
			return c
		}
		s.pos++
	}
	return 0
}

// object calls member for each member, with its name and s at its value, which
// member passes over.
func (s *scan) object(member func(name []byte) bool) bool {
	if s.next() != '{' {
		return false
	}
	s.pos++
	if s.next() == '}' {
		s.pos++
		return true
	}
	for {
		name, ok := s.text()
		if !ok || s.next() != ':' {
			return false
		}
		s.pos++
		if !member(name) {
			return false
		}
		switch s.next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return true
		default:
			return false
		}
	}
}

func (s *scan) frameMember(name []byte, f *frame) (ok bool) {
	switch string(name) {
	case "type":
		f.kind, ok = s.text()
	case "taskId":
		f.taskID, ok = s.text()
	case "leaseToken":
		f.token, ok = s.text()
	case "ref":
		var raw []byte
		if raw, ok = s.value(); ok {
			f.ref, ok = integer(raw)
		}
	case "task":
		ok = s.object(func(name []byte) bool { return s.taskMember(name, f) })
	default:
		_, ok = s.value()
	}
	return ok
}

func (s *scan) taskMember(name []byte, f *frame) (ok bool) {
	switch string(name) {
	case "id":
		f.id, ok = s.text()
	case "payload":
		f.payload, ok = s.value()
	default:
		_, ok = s.value()
	}
	return ok
}

// text passes over a string and returns what is between the quotes, escapes
// as they stand.
func (s *scan) text() ([]byte, bool) {
	if s.next() != '"' {
		return nil, false
	}
	start := s.pos + 1
	for at := start; ; at++ {
		i := bytes.IndexByte(s.data[at:], '"')
		if i < 0 {
			return nil, false
		}
		at += i
		slashes := at
		for s.data[slashes-1] == '\\' {
			slashes--
		}
		if (at-slashes)%2 == 0 {
			s.pos = at + 1
			return s.data[start:at], true
		}
	}
}

// value passes over any value and returns its extent.
func (s *scan) value() ([]byte, bool) {
	c := s.next()
	start := s.pos
	switch c {
	case 0, ',', ':', '}', ']':
		return nil, false
	case '"':
		_, ok := s.text()
		return s.data[start:s.pos], ok
	case '{', '[':
		ok := s.brackets()
		return s.data[start:s.pos], ok
	}
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return s.data[start:s.pos], true
		}
		s.pos++
	}
	return s.data[start:s.pos], true
}

// brackets passes over an object or a list by counting what opens and closes.
func (s *scan) brackets() bool {
	for depth := 0; s.pos < len(s.data); {
		switch s.data[s.pos] {
		case '"':
			if _, ok := s.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return true
		}
	}
	return false
}

func integer(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// readID reads the canonical text of a task's id without a copy of it.
func readID(text []byte) (id wire.TaskID, ok bool) {
	if len(text) != 36 {
		return id, false
	}
	at := 0
	for _, part := range [...][2]int{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}} {
		n, err := hex.Decode(id[at:], text[part[0]:part[1]])
		if err != nil {
			return id, false
		}
		at += n
	}
	return id, true
}

// readToken reads a lease token without a copy of it.
func readToken(text []byte) (token wire.Token, ok bool) {
	if len(text) != 2*len(token) {
		return token, false
	}
	_, err := hex.Decode(token[:], text)
	return token, err == nil
}
