package wire

import (
	"encoding/hex"
	"strings"
)

// Trace is a traceparent of W3C Trace Context, taken apart: a trace, the span in it that is
// the parent of what follows, and its flags.
type Trace struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// TraceSampled is the flag of a trace that is recorded.
const TraceSampled = 1

const (
	traceParentBytes = len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	// maxTraceMembers bounds the members of a tracestate, maxTraceKeyBytes their parts.
	maxTraceMembers  = 32
	maxTraceKeyBytes = 256
)

// ParseTrace reads a traceparent. One of a later version may have more behind what version 00
// has. It may be called from any goroutine.
func ParseTrace(text string) (t Trace, ok bool) {
	if len(text) < traceParentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" {
		return t, false
	}
	if more := text[traceParentBytes:]; more != "" && (text[:2] == "00" || more[0] != '-' || strings.ContainsFunc(more, isNoGraphic)) {
		return t, false
	}
	var version, flags [1]byte
	ok = lowerHex(version[:], text[:2]) && lowerHex(t.TraceID[:], text[3:35]) && lowerHex(t.SpanID[:], text[36:52]) && lowerHex(flags[:], text[53:55])
	t.Flags = flags[0]
	return t, ok && t.TraceID != [16]byte{} && t.SpanID != [8]byte{}
}

func lowerHex(dst []byte, text string) bool {
	_, err := hex.Decode(dst, []byte(text))
	return err == nil && strings.ToLower(text) == text
}

// String is the traceparent of version 00.
func (t Trace) String() string {
	text := append(make([]byte, 0, traceParentBytes), "00-"...)
	text = append(hex.AppendEncode(text, t.TraceID[:]), '-')
	text = append(hex.AppendEncode(text, t.SpanID[:]), '-')
	return string(hex.AppendEncode(text, []byte{t.Flags}))
}

// traceParentProblem continues a sentence that begins with traceParent; "" is none.
func traceParentProblem(text string) string {
	if _, ok := ParseTrace(text); !ok && len(text) <= MaxTraceBytes {
		return "must be a traceparent of W3C Trace Context, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	}
	return ""
}

// traceStateProblem continues a sentence that begins with traceState; "" is none.
func traceStateProblem(text string) string {
	const problem = "must be a tracestate of W3C Trace Context: up to 32 members like vendor=value with commas between"
	if len(text) > MaxTraceBytes {
		return ""
	}
	members := strings.Split(text, ",")
	if len(members) > maxTraceMembers {
		return problem
	}
	for _, member := range members {
		key, value, found := strings.Cut(strings.Trim(member, " \t"), "=")
		switch {
		case key == "" && !found: // an empty member is allowed
		case !found, key == "", value == "", len(key) > maxTraceKeyBytes, len(value) > maxTraceKeyBytes,
			strings.ContainsFunc(key, isNoTraceKey), strings.ContainsFunc(value, isNoTraceValue):
			return problem
		}
	}
	return ""
}

func isNoTraceKey(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_-*/@", r)
}

func isNoGraphic(r rune) bool { return r <= ' ' || r > '~' }

// isNoTraceValue is about a value without commas, and without white space around it.
func isNoTraceValue(r rune) bool { return r < ' ' || r > '~' || r == '=' }

// TraceContext returns the trace context of two headers, which is empty if traceparent is not
// valid; a tracestate that is not valid is left out. So says W3C Trace Context. It may be called
// from any goroutine.
func TraceContext(parent, state string) (traceParent, traceState string) {
	if len(parent) > MaxTraceBytes || parent == "" || traceParentProblem(parent) != "" {
		return "", ""
	}
	if len(state) > MaxTraceBytes || traceStateProblem(state) != "" {
		state = ""
	}
	return parent, state
}
