package wire

import (
	"strings"
	"testing"
)

const goodTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceParentsAreThoseOfTheStandard(t *testing.T) {
	for text, want := range map[string]string{
		goodTrace:                   goodTrace,
		"cc" + goodTrace[2:]:        goodTrace, // a later version
		"cc" + goodTrace[2:] + "-x": goodTrace,
		"00" + goodTrace[2:] + "-x": "", "cc" + goodTrace[2:] + "x": "", "cc" + goodTrace[2:] + "-\n": "", "ff" + goodTrace[2:]: "",
		strings.ToUpper(goodTrace): "", goodTrace[:54]: "", "": "", " " + goodTrace: "", strings.Replace(goodTrace, "-", "_", 1): "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"0g" + goodTrace[2:]: "",
	} {
		got, ok := ParseTrace(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q is %v, %v", text, got, ok)
		}
	}
}

func TestATraceContextOfHeadersIsWholeOrNothing(t *testing.T) {
	many := strings.Repeat("a=1,", maxTraceMembers)
	for _, c := range []struct{ parent, state, wantParent, wantState string }{
		{goodTrace, "a=b,c@d=e f", goodTrace, "a=b,c@d=e f"},
		{goodTrace, "a=b, ,\tc=d", goodTrace, "a=b, ,\tc=d"},
		{goodTrace, "", goodTrace, ""},
		{"x", "a=b", "", ""}, {"", "a=b", "", ""}, {"cc" + goodTrace[2:] + "-" + strings.Repeat("x", MaxTraceBytes), "", "", ""},
		{goodTrace, "A=b", goodTrace, ""}, {goodTrace, "a=b=c", goodTrace, ""}, {goodTrace, "a", goodTrace, ""}, {goodTrace, "a=", goodTrace, ""},
		{goodTrace, "=b", goodTrace, ""}, {goodTrace, "a=\x00", goodTrace, ""}, {goodTrace, "a=é", goodTrace, ""},
		{goodTrace, many + "a=1", goodTrace, ""}, {goodTrace, "a=" + strings.Repeat("b", maxTraceKeyBytes+1), goodTrace, ""},
		{goodTrace, strings.Repeat("a=1234567890123456,", 31), goodTrace, ""},
	} {
		if parent, state := TraceContext(c.parent, c.state); parent != c.wantParent || state != c.wantState {
			t.Errorf("%q, %q became %q, %q", c.parent, c.state, parent, state)
		}
	}
}

// FuzzTraceContext: what passes is a header, and a trace comes back as it was.
func FuzzTraceContext(f *testing.F) {
	f.Add(goodTrace, "a=b")
	f.Add("cc"+goodTrace[2:]+"-more", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
	f.Fuzz(func(t *testing.T, parent, state string) {
		parent, state = TraceContext(parent, state)
		if strings.ContainsFunc(parent+state, func(r rune) bool { return (r < ' ' || r > '~') && r != '\t' }) {
			t.Fatalf("no header can be %q, %q", parent, state)
		}
		if trace, ok := ParseTrace(parent); ok {
			if again, ok := ParseTrace(trace.String()); !ok || again != trace {
				t.Fatalf("%q became %q", parent, trace)
			}
		}
	})
}
