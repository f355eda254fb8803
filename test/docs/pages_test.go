package docs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codeq/test/blackbox"
)

// runPages are the pages that are typed from top to bottom:
//
//	console  goes into one shell a page, line by line behind "$ ", beside a server of its own; what the page
//	         shows below a line must be what it prints
//	file     a block below <!-- file: NAME --> is written where that shell is. Go is built, Python and scripts are
//	         run by the lines of the page; sdk/typescript/test/package.test.mjs compiles and runs TypeScript
var runPages = []string{"../README.md", "README.md", "start.md", "comparison.md", "backup.md", "disk-full.md", "leaving.md", "sizing.md", "concepts/*.md", "guides/*.md"}

func TestThePagesRunAsTheyStand(t *testing.T) {
	var goFiles []*block
	desks := map[string][]*block{}
	for _, page := range everyPage(t) {
		for _, b := range blocksOf(t, page) {
			if !runsHere(b) {
				continue
			}
			if desks[page] = append(desks[page], b); b.kind == "go" {
				goFiles = append(goFiles, b)
			}
		}
	}
	programs := buildGo(t, goFiles)
	// Pages wait more than they compute, so more of them run at a time than there are processors.
	var pages sync.WaitGroup
	room := make(chan struct{}, 6)
	for page, blocks := range desks {
		pages.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(page, func(t *testing.T) { newTerminal(t, blocks, filepath.Join(programs, page)).play(blocks) })
		})
	}
	pages.Wait()
}

// buildGo builds the Go files of pages in a module of its own, and returns where the programs are:
// each in a directory of its page.
func buildGo(t *testing.T, files []*block) string {
	t.Helper()
	dir := t.TempDir()
	if len(files) == 0 {
		return dir
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, "module")
	packages := map[string][]string{}
	for _, b := range files {
		write(t, filepath.Join(module, b.page, b.file), b.text)
		packages[b.page] = append(packages[b.page], "./"+filepath.Join(b.page, filepath.Dir(b.file)))
	}
	_, versions, _ := strings.Cut(readPage(t, "../go.mod"), "module codeq\n")
	write(t, filepath.Join(module, "go.mod"), "module pages\n\nrequire codeq v0.0.0\nreplace codeq => "+root+"\n"+
		regexp.MustCompile(`(?m)^toolchain .*$`).ReplaceAllString(versions, ""))
	write(t, filepath.Join(module, "go.sum"), readPage(t, "../go.sum"))
	t.Setenv("CGO_ENABLED", "0")
	for page, paths := range packages {
		goIn(t, module, append([]string{"go", "build", "-ldflags=-w", "-o", filepath.Join(dir, page) + "/"}, paths...)...)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o700)); err != nil {
		t.Fatal(err)
	}
}

// terminal is a shell in which the lines of a page are typed.
type terminal struct {
	t     *testing.T
	dir   string
	at    string // the address of the server
	peer  string // that of its port for other nodes
	names names
	shell *exec.Cmd
	in    io.WriteCloser
	ended *bufio.Scanner // a line with the exit code of each command
	typed int
}

// Where a page says that its server listens, and where a node of a cluster does.
const (
	usualAddress = "127.0.0.1:8080"
	usualPeer    = "127.0.0.1:8090"
)

// newTerminal opens a shell in a directory with the files of a page. Unless the page starts one,
// a server runs. Programs of the page in Go are in the directory programs: `go run` there runs them.
func newTerminal(t *testing.T, blocks []*block, programs string) *terminal {
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, dir: t.TempDir(), peer: blackbox.Address(t), names: newNames()}
	serves := false
	for _, b := range blocks {
		if b.file != "" {
			write(t, filepath.Join(x.dir, b.file), b.text)
			continue
		}
		serves = serves || strings.Contains(b.text, "$ codeq serve")
		for _, tool := range []string{"curl", "python3"} {
			if _, err := exec.LookPath(tool); err != nil && strings.Contains(b.text, tool) {
				t.Skipf("no %s is installed", tool) // it runs wherever there is one
			}
		}
	}
	if x.at = blackbox.Address(t); !serves {
		x.at = blackbox.Serve(t).Addr
	}
	tools := filepath.Join(x.dir, ".tools")
	write(t, filepath.Join(tools, "go"), "#!/bin/sh\n[ \"$1\" = run ] && exec \""+programs+"/${2#./}\"\n")
	sdk, err := filepath.Abs("../sdk/python/src")
	if err != nil {
		t.Fatal(err)
	}
	x.shell = exec.Command("sh")
	x.shell.Dir = x.dir
	x.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	x.shell.Env = append(os.Environ(), "PATH="+tools+":"+filepath.Dir(program)+":"+os.Getenv("PATH"), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1",
		"CODEQ_URL=http://"+x.at, "CODEQ_LISTEN="+x.at)
	out, err := x.shell.StdoutPipe()
	if err == nil {
		x.in, err = x.shell.StdinPipe()
	}
	if err = errors.Join(err, x.shell.Start()); err != nil {
		t.Fatal(err)
	}
	x.ended = bufio.NewScanner(out)
	t.Cleanup(x.close)
	return x
}

// close ends the shell and all that it has started.
func (x *terminal) close() {
	group := -x.shell.Process.Pid
	_ = x.in.Close()                         // its commands may go on
	_ = syscall.Kill(group, syscall.SIGTERM) // there may be none
	for end := time.Now().Add(patience); syscall.Kill(group, 0) == nil && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		_ = x.shell.Process.Signal(syscall.SIGTERM)
		if time.Until(end) < patience/2 {
			_ = syscall.Kill(group, syscall.SIGKILL)
		}
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(x.shell.Process.Pid, &status, syscall.WNOHANG, nil)
	}
}

// play types what the console blocks of a page have.
func (x *terminal) play(blocks []*block) {
	for _, b := range blocks {
		if b.kind != "console" {
			continue
		}
		for _, step := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			line, shown, _ := strings.Cut(step, "\n")
			for strings.HasSuffix(line, "\\") {
				next, rest, _ := strings.Cut(shown, "\n")
				line, shown = line+"\n"+next, rest
			}
			if err := x.enter(x.here(line), strings.TrimRight(shown, "\n")); err != nil {
				x.t.Fatalf("%s: $ %s\n%v", b, line, err)
			}
		}
	}
}

// here puts the addresses of this server, and its ids, into a text of the page.
func (x *terminal) here(text string) string { return x.names.fill(x.addresses(text)) }

func (x *terminal) addresses(text string) string {
	return strings.NewReplacer(usualAddress, x.at, usualPeer, x.peer).Replace(text)
}

// job is the end of a line that leaves something running.
var job = regexp.MustCompile(`&( \w+=\$!)?$`)

// enter types a line and compares what comes. What runs in the background may say it later.
func (x *terminal) enter(line, shown string) error {
	x.typed++
	file := filepath.Join(x.dir, fmt.Sprintf(".out%d", x.typed))
	if _, err := fmt.Fprintf(x.in, "{\n%s\n} >%s 2>&1 </dev/null; echo $?\n", line, file); err != nil {
		return fmt.Errorf("type: %w", err)
	}
	alarm := time.AfterFunc(patience, func() { _ = syscall.Kill(-x.shell.Process.Pid, syscall.SIGKILL) })
	defer alarm.Stop()
	if !x.ended.Scan() {
		said, _ := os.ReadFile(file) // it is for people
		return fmt.Errorf("the shell has ended, or the line takes longer than %v; it says\n%s", patience, said)
	}
	if strings.HasPrefix(line, "codeq serve") {
		x.awaitServer()
	}
	background := job.MatchString(line)
	if background && shown != "" {
		shown += "\n" + more // it says more later
	}
	for end := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		said, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read what it says: %w", err)
		}
		if shown != "" {
			err = x.compare(strings.Split(shown, "\n"), strings.Split(strings.TrimRight(string(said), "\n"), "\n"))
		} else if x.ended.Text() != "0" {
			err = fmt.Errorf("it exits with %s and says\n%s", x.ended.Text(), said)
		}
		if err == nil || !background || time.Now().After(end) {
			return err
		}
	}
}

// awaitServer waits as a person does who looks at what the server says.
func (x *terminal) awaitServer() {
	until(x.t, "the server of the page takes requests", func() bool {
		answer, err := http.Get("http://" + x.at + "/readyz")
		if err != nil {
			return false
		}
		http.DefaultClient.CloseIdleConnections()
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
}

// spaces are of a table, whose columns are as wide as what is in them.
var spaces = regexp.MustCompile(` {2,}`)

// moment is a time as a terminal shows it. Where there is none a stamp stands there.
var moment = regexp.MustCompile(`\b(\d+[smhd] ago|in \d+[smhd]|now)\b`)

// compare compares lines of the page with those of a program. A line "…" stands for any lines, and
// "…" in a line for anything.
func (x *terminal) compare(page, real []string) error {
	for i, line := range page {
		if line == more && i+1 == len(page) {
			return nil
		}
		if line == more {
			for skip := range real[min(i, len(real)):] {
				if x.compare(page[i+1:], real[i+skip:]) == nil {
					return nil
				}
			}
			return fmt.Errorf("no line is %s\nit says\n%s", page[i+1], strings.Join(real, "\n"))
		}
		if i >= len(real) || !x.line(line, real[i]) {
			return fmt.Errorf("the page has    %s\nit says\n%s", line, strings.Join(real, "\n"))
		}
	}
	if len(real) > len(page) {
		return fmt.Errorf("the page ends before\n%s", strings.Join(real[len(page):], "\n"))
	}
	return nil
}

func (x *terminal) line(page, real string) bool {
	page, real = spaces.ReplaceAllString(strings.TrimRight(page, " "), " "), spaces.ReplaceAllString(strings.TrimRight(real, " "), " ")
	pattern := regexp.QuoteMeta(x.addresses(page))
	pattern = strings.ReplaceAll(pattern, more, ".*")
	pattern = moment.ReplaceAllString(pattern, "(?:"+timeForm+"|now|[0-9]+[smhd] ago)")
	var ids []string
	pattern = idOrToken.ReplaceAllStringFunc(pattern, func(id string) string {
		ids = append(ids, id)
		return "(" + idForm + "|" + tokenForm + ")"
	})
	found := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(real)
	if found == nil {
		return false
	}
	names := x.names.clone()
	for i, id := range ids {
		if names.bind(id, found[i+1]) != nil {
			return false
		}
	}
	x.names = names
	return true
}

// listed is an item of the index.
var listed = regexp.MustCompile(`(?m)^- \[([^\]]+)\]\(([^)#]+)\): \S`)

// Every page is once in the index of its kind: docs/README.md, which the site takes as its navigation, has those
// for users, and internal/README.md those for people who change codeq.
func TestEachIndexHasItsPagesOnce(t *testing.T) {
	pages := map[string]map[string]int{"README.md": {"../sdk/python/README.md": 0, "../sdk/typescript/README.md": 0}, "internal/README.md": {}}
	for _, page := range pagesBelow(t) {
		index := "README.md"
		if inner, found := strings.CutPrefix(page, "internal/"); found {
			index, page = "internal/README.md", inner
		}
		if page != "README.md" {
			pages[index][page] = 0
		}
	}
	for name, pages := range pages {
		index := readPage(t, name)
		for _, m := range listed.FindAllStringSubmatch(index, -1) {
			if _, ok := pages[m[2]]; !ok {
				t.Errorf("docs/%s lists %s, which is no page", name, m[2])
			}
			pages[m[2]]++
		}
		for _, page := range slices.Sorted(maps.Keys(pages)) {
			if pages[page] != 1 {
				t.Errorf("docs/%s lists %s %d times; write a line \"- [Title](%[2]s): what one finds there\" below one of its headings", name, page, pages[page])
			}
		}
		if items := strings.Count(index, "\n- "); items != len(pages) {
			t.Errorf("docs/%s has %d items and %d pages: an item is \"- [Title](path): what one finds there\"", name, items, len(pages))
		}
	}
}

// The comparison of what a page shows must itself be able to fail.
func TestAPageIsComparedLineByLine(t *testing.T) {
	const id, other = "01a21f90-1ec2-741a-92dc-12e28e9a752f", "11a21f90-1ec2-741a-92dc-12e28e9a7520"
	for _, c := range []struct {
		page, real string
		same       bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a", "a\nb", false},
		{"a\nb", "a", false},
		{"a\n…", "a\nb\nc", true},
		{"…\nc", "a\nb\nc", true},
		{"…\nd", "a\nb\nc", false},
		{"a … c", "a b c", true},
		{"a … c", "a b d", false},
		{"A  B\na    b", "A   B\na   b", true},
		{"ended  4s ago", "ended  2026-11-30T19:03:26.183Z", true},
		{"ended  4s ago", "ended  soon", false},
		{id + "\n" + id, other + "\n" + other, true},
		{id + "\n" + id, other + "\n" + id, false},
		{"at 127.0.0.1:8080", "at 127.0.0.1:4711", true},
		{"at 127.0.0.1:8080", "at 127.0.0.1:8080", false},
	} {
		x := &terminal{t: t, at: "127.0.0.1:4711", names: newNames()}
		if err := x.compare(strings.Split(c.page, "\n"), strings.Split(c.real, "\n")); (err == nil) != c.same {
			t.Errorf("%q and %q: %v", c.page, c.real, err)
		}
	}
}

var (
	// measured is a figure that somebody measured: a rate, a processor time, a ratio.
	measured = regexp.MustCompile(`\d[\d,.]* ?(µs|ns|\w+/s|tasks a second)\b|times as fast`)
	// measuredBy is what prints such figures, or the page that says so of them.
	measuredBy = regexp.MustCompile("`(make [a-z-]+|codeq bench|go test|… --)|sdk/bench|(performance|sizing)\\.md")
	codeBlocks = regexp.MustCompile("(?s)\n```.*?\n```")
)

// A section of a page that has a measured figure names the command that prints it.
func TestAFigureNamesItsCommand(t *testing.T) {
	found := 0
	for _, page := range everyPage(t) {
		for _, section := range regexp.MustCompile(`\n#+ `).Split(codeBlocks.ReplaceAllString(readPage(t, page), ""), -1) {
			figure := measured.FindString(section)
			if figure == "" {
				continue
			}
			title, _, _ := strings.Cut(section, "\n")
			if found++; !measuredBy.MatchString(section) {
				t.Errorf("%s, %q says %s and names no command that prints it, as `make peers` or `codeq bench`", page, title, figure)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d sections have figures", found)
	}
}
