package wire

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// What is read is what the standard library reads, in fewer spellings.
func FuzzParseScalars(f *testing.F) {
	for _, seed := range []string{
		"", "0", "-0", "5", "+5", "05", "-9223372036854775808", "9223372036854775808", "1_0", "10s", ".5s", "5.s", "1m1.5s", "5", "1µs", "-5s", "0",
		"2031-01-02T03:04:05Z", "2031-01-02T3:04:05Z", "2031-01-02T03:04:05,5Z", "2031-01-02T03:04:05.0001+01:00", " a\r\n", "a b", "é", "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := ParseInteger(text); ok {
			if want, err := strconv.ParseInt(text, 10, 64); err != nil || want != n || text != strconv.FormatInt(n, 10) && text != "-0" {
				t.Fatalf("%q is read as %d, want %d, %v", text, n, want, err)
			}
		} else if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
			t.Fatalf("%q is not read", text)
		}
		if d, ok := ParseDuration(text); ok {
			if want, err := time.ParseDuration(text); err != nil || want != d || d < 0 || strings.ContainsAny(text, "+- ") {
				t.Fatalf("%q is read as %v, want %v, %v", text, d, want, err)
			}
		}
		if ms, ok := ParseTimeMs(text); ok {
			want, err := time.Parse(time.RFC3339Nano, text)
			if early := want.Sub(time.UnixMilli(ms)); err != nil || early > 0 || early <= -time.Millisecond {
				t.Fatalf("%q is read as %d, want %v, %v", text, ms, want, err)
			}
		}
		if credential, problem := ParseCredential(text); problem == "" {
			if again, problem := ParseCredential(credential); again != credential || problem != "" || strings.ContainsAny(credential, " \r\n\t\x00") {
				t.Fatalf("%q is read as %q, which is read as %q, %s", text, credential, again, problem)
			}
		}
		if TextProblem(text) == "" && strings.ContainsAny(text, "\r\n\x00\x1b\ufeff") {
			t.Fatalf("%q has no problem", text)
		}
	})
}

func TestN15DurationsReadWhatTheyPrint(t *testing.T) {
	for _, d := range []time.Duration{0, 1, time.Microsecond, 1500 * time.Microsecond, time.Second, 90 * time.Minute, 87600 * time.Hour, 1<<63 - 1} {
		if got, ok := ParseDuration(d.String()); !ok || got != d {
			t.Errorf("%v is read as %v, %t", d, got, ok)
		}
	}
}
