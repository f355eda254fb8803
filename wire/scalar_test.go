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
		"", "0", "-0", "5", "+5", "05", "-9223372036854775808", "9223372036854775808", "1_0", "10s", ".5s", "5.s", "1m1.5s", "5", "1µs", "-5s", "0", "7d", "1d12h", "1.5d", "106751d23h47m16.854775807s", "106752d", "9223372037", "5d5", "d",
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
			if want, err := plainDuration(text); err != nil || want != d || d < 0 || strings.ContainsAny(text, "+- ") {
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

// plainDuration is what the standard library reads once days are hours and a bare number
// has its unit.
func plainDuration(text string) (time.Duration, error) {
	if strings.Trim(text, decimals) == "" {
		return time.ParseDuration(text + "s")
	}
	var sum time.Duration
	parts := strings.Split(text, "d")
	for _, days := range parts[:len(parts)-1] {
		i := strings.LastIndexAny(days, "hmsuµn") + 1
		for i > 0 && i < len(days) && days[i]&0xc0 == 0x80 {
			i++
		}
		d, err := time.ParseDuration(days[i:] + "h")
		if err != nil {
			return 0, err
		}
		sum += 24 * d
		if i > 0 {
			before, err := time.ParseDuration(days[:i])
			if err != nil {
				return 0, err
			}
			sum += before
		}
	}
	if parts[len(parts)-1] == "" {
		return sum, nil
	}
	rest, err := time.ParseDuration(parts[len(parts)-1])
	return sum + rest, err
}

func TestU10DurationsReadDaysAndBareSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "90": 90 * time.Second, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour,
		"2h1d": 26 * time.Hour, "106751d": 106751 * 24 * time.Hour, "9223372036": 9223372036 * time.Second,
	} {
		if got, ok := ParseDuration(text); !ok || got != want {
			t.Errorf("%q is read as %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-5", "05", "5.5", "5 s", "d", "7D", "1w", "106752d", "9223372037", "106751d24h", "1e3", "5s5"} {
		if got, ok := ParseDuration(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestN15DurationsReadWhatTheyPrint(t *testing.T) {
	for _, d := range []time.Duration{0, 1, time.Microsecond, 1500 * time.Microsecond, time.Second, 90 * time.Minute, 87600 * time.Hour, 1<<63 - 1} {
		if got, ok := ParseDuration(d.String()); !ok || got != d {
			t.Errorf("%v is read as %v, %t", d, got, ok)
		}
	}
}
