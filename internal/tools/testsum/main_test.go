package main

import (
	"strings"
	"testing"
)

func run(t *testing.T, lines ...string) (out string, good bool) {
	t.Helper()
	var b strings.Builder
	s := newSummary(&b)
	if err := s.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	good = s.close()
	return b.String(), good
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestCountsFunctionsAndNotSubTests(t *testing.T) {
	out, good := run(t,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestA/one"}`,
		`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestB"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
		`{"Action":"pass","Package":"p"}`)
	if got, want := lastLine(out), "1 passed, 0 failed, 1 skipped"; got != want || !good {
		t.Fatalf("closing line %q, good %v; want %q, true", got, good, want)
	}
	if !strings.Contains(out, "ok  \tp\t0.1s\n") {
		t.Fatalf("the package's line is missing in %q", out)
	}
}

func TestATestThatRanTwiceCountsOnceAndByItsWorst(t *testing.T) {
	twice := func(first, second string) []string {
		var lines []string
		for _, action := range []string{first, second} {
			lines = append(lines,
				`{"Action":"start","Package":"p"}`,
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"`+action+`","Package":"p","Test":"TestA"}`,
				`{"Action":"`+strings.Replace(action, "skip", "pass", 1)+`","Package":"p"}`)
		}
		return lines
	}
	for _, c := range []struct{ first, second, want string }{
		{"pass", "pass", "1 passed, 0 failed"},
		{"skip", "pass", "1 passed, 0 failed"},
		{"fail", "pass", "0 passed, 1 failed"},
		{"pass", "fail", "0 passed, 1 failed"},
	} {
		if out, _ := run(t, twice(c.first, c.second)...); lastLine(out) != c.want {
			t.Errorf("%s, then %s: closing line %q, want %q", c.first, c.second, lastLine(out), c.want)
		}
	}
}

func TestAFailureIsPrintedWithItsOutput(t *testing.T) {
	out, good := run(t,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA/good","Output":"    --- PASS: TestA/good\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA/sub","Output":"want 1, got 2\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA/sub"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"fail","Package":"p"}`)
	if got, want := lastLine(out), "0 passed, 1 failed"; got != want || good {
		t.Fatalf("closing line %q, good %v; want %q, false", got, good, want)
	}
	if !strings.Contains(out, "want 1, got 2\n") || strings.Contains(out, "=== RUN") || strings.Contains(out, "PASS") {
		t.Fatalf("output is %q", out)
	}
}

func TestFailuresThatNoTestReports(t *testing.T) {
	for name, lines := range map[string][]string{
		"a package that does not build": {
			`{"Action":"build-output","ImportPath":"p","Output":"p.go:1: boom\n"}`,
			`{"Action":"fail","Package":"p","FailedBuild":"p"}`,
		},
		"a process that was gone before its test ended": {
			`{"Action":"run","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Test":"TestA","Output":"boom\n"}`,
			`{"Action":"fail","Package":"p"}`,
		},
		"a process that exits 0 inside a test": {
			`{"Action":"run","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Test":"TestA","Output":"boom\n"}`,
			`{"Action":"pass","Package":"p"}`,
		},
		"a stream that breaks off": {
			`{"Action":"run","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Test":"TestA","Output":"boom\n"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, good := run(t, lines...)
			if got, want := lastLine(out), "0 passed, 1 failed"; got != want || good {
				t.Fatalf("closing line %q, good %v; want %q, false", got, good, want)
			}
			if !strings.Contains(out, "boom\n") {
				t.Fatalf("the reason is missing in %q", out)
			}
		})
	}
}

func TestNothingRunIsNotGreen(t *testing.T) {
	out, good := run(t, `go: no such directory`)
	if good || lastLine(out) != "0 passed, 0 failed" || !strings.Contains(out, "go: no such directory\n") {
		t.Fatalf("good %v, output %q", good, out)
	}
}
