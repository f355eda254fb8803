package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "testsum: read standard input: %v\n", err)
		os.Exit(1)
	}
	if !s.close() {
		os.Exit(1)
	}
}

// event is one line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output, where Package is empty
	Test       string
	Output     string
}

// testKey names one test function of one package.
type testKey struct{ pkg, test string }

// outcome of a test function; of several runs the greatest counts, so that a
// failure is never lost and a test that ran once is not called skipped.
type outcome int

const (
	skipped outcome = iota
	passed
	failed
)

// summary counts test functions and keeps the output of those that run.
type summary struct {
	out      io.Writer
	running  map[testKey][]string
	outcomes map[testKey]outcome // an empty test is the package itself
	failures map[string]int      // of each package, in the run that is under way
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:      out,
		running:  map[testKey][]string{},
		outcomes: map[testKey]outcome{},
		failures: map[string]int{},
	}
}

func (s *summary) record(k testKey, o outcome) {
	s.outcomes[k] = max(s.outcomes[k], o)
	if o == failed {
		s.failures[k.pkg]++
	}
}

// read takes events until the end of r. A line that is no event is printed as
// it is: it is somebody's word about why there are no events.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				s.take(e)
			} else {
				fmt.Fprintf(s.out, "%s\n", strings.TrimRight(string(line), "\n"))
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) take(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.out, e.Output)
	case e.Test == "":
		s.takePackage(e)
	default:
		s.takeTest(e)
	}
}

// takePackage handles what is said about a package as a whole.
func (s *summary) takePackage(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			fmt.Fprint(s.out, e.Output)
		}
	case "pass", "skip":
		s.abandon(e.Package)
	case "fail":
		s.abandon(e.Package)
		if s.failures[e.Package] == 0 {
			s.record(testKey{pkg: e.Package}, failed)
		}
	case "start":
		s.failures[e.Package] = 0
	}
}

// takeTest handles what is said about a test or one of its sub-tests.
func (s *summary) takeTest(e event) {
	top, _, isSub := strings.Cut(e.Test, "/")
	k := testKey{e.Package, top}
	switch e.Action {
	case "run":
		if !isSub {
			s.running[k] = []string{}
		}
	case "output":
		if !noise(e.Output) {
			s.running[k] = append(s.running[k], e.Output)
		}
	case "pass", "fail", "skip":
		if !isSub {
			s.end(k, e.Action)
		}
	}
}

// noise is what go test says of tests that start, wait or pass.
func noise(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- PASS")
}

func (s *summary) end(k testKey, action string) {
	switch action {
	case "pass":
		s.record(k, passed)
	case "skip":
		s.record(k, skipped)
	case "fail":
		s.print(k)
		s.record(k, failed)
	}
	delete(s.running, k)
}

// abandon counts tests of an ended package that never said how they ended: the
// process was gone before they could.
func (s *summary) abandon(pkg string) {
	keys := slices.SortedFunc(maps.Keys(s.running), func(a, b testKey) int {
		return strings.Compare(a.pkg+" "+a.test, b.pkg+" "+b.test)
	})
	for _, k := range keys {
		if k.pkg != pkg {
			continue
		}
		fmt.Fprintf(s.out, "--- LOST: %s did not end\n", k.test)
		s.print(k)
		s.record(k, failed)
		delete(s.running, k)
	}
}

func (s *summary) print(k testKey) {
	for _, line := range s.running[k] {
		fmt.Fprint(s.out, line)
	}
}

// close prints the closing line and says whether the run was a good one.
func (s *summary) close() bool {
	for k := range s.running {
		s.abandon(k.pkg)
	}
	var count [failed + 1]int
	for _, o := range s.outcomes {
		count[o]++
	}
	if count[passed]+count[failed] == 0 {
		fmt.Fprintln(s.out, "no test ran")
	}
	line := fmt.Sprintf("%d passed, %d failed", count[passed], count[failed])
	if count[skipped] > 0 {
		line += fmt.Sprintf(", %d skipped", count[skipped])
	}
	fmt.Fprintln(s.out, line)
	return count[failed] == 0 && count[passed] > 0
}
