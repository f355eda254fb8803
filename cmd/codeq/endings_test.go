package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codeq/client"
)

// begins runs a program that reports to a watcher, and returns when it has.
func begins(t *testing.T, ctx context.Context, p *program, w *watcher) (pid int, ended func(), done <-chan string) {
	t.Helper()
	got := make(chan string, 1)
	go func() { got <- outcome(p.work(ctx, delivery("1"))) }()
	pid, ended = w.running()
	return pid, ended, got
}

func TestN04RunThatTakesTooLongIsEndedAndTriedAgain(t *testing.T) {
	for name, want := range map[string]string{
		"hold":     "nacked timeout: ended after 500ms",
		"polite":   "nacked timeout: ended after 500ms", // an exit status of 0 on TERM is no result
		"stubborn": "nacked timeout: ended after 500ms",
	} {
		w := newWatcher(t)
		p := fake(name, w.path)
		p.timeout, p.termFor = 500*time.Millisecond, 100*time.Millisecond
		if name == "polite" {
			p.termFor = 30 * time.Second
		}
		_, ended, done := begins(t, context.Background(), p, w)
		ended()
		if got := <-done; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	p := fake("exit", "1", "why")
	p.timeout = time.Hour
	if got := outcome(p.work(context.Background(), delivery("1"))); got != "nacked why" {
		t.Errorf("got %q", got)
	}
}

func TestN04StoppedProgramIsToldOfAndEnded(t *testing.T) {
	w := newWatcher(t)
	p := fake("hold", w.path)
	p.stallFor = 50 * time.Millisecond
	said := make(chan string, 1)
	p.say = func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
	pid, ended, done := begins(t, context.Background(), p, w)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	has(t, <-said, delivery("").Task.ID.String(), "SIGSTOP", "50ms")
	ended()
	if got := <-done; got != "nacked stopped by SIGSTOP for 50ms, and ended" {
		t.Errorf("got %q", got)
	}
}

func TestN04StoppedProgramThatGoesOnIsLeftAlone(t *testing.T) {
	w := newWatcher(t)
	p := fake("polite", w.path)
	p.stallFor = time.Hour
	said := make(chan string, 1)
	p.say = func(string, ...any) { said <- "" }
	pid, ended, done := begins(t, context.Background(), p, w)
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGTERM} {
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
		if s == syscall.SIGSTOP {
			<-said
		}
	}
	ended()
	if got := <-done; got != `completed {"stopped":true}` {
		t.Errorf("got %q", got)
	}
}

// A signal that goes to the worker and its program alike is no failure of the
// task, whoever of them gets it first.
func TestN01DeathByAStopSignalWaitsForTheWorkersOwn(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct {
		program string
		args    []string
		want    string
	}{
		"by TERM":        {"by", []string{"TERM"}, "released"},
		"by INT":         {"by", []string{"INT"}, "released"},
		"by HUP":         {"by", []string{"HUP"}, "released"},
		"status 143":     {"exit", []string{"143", "no"}, "released"},
		"status 130":     {"exit", []string{"130", "no"}, "released"},
		"by KILL":        {"die", nil, "nacked signal: killed"},
		"status 137":     {"exit", []string{"137", "no"}, "nacked no"},
		"another status": {"exit", []string{"1", "no"}, "nacked no"},
		"it completes":   {"print", []string{"{}"}, "completed {}"},
		"for good":       {"exit", []string{"65", "no"}, "failed no"},
	} {
		for _, when := range []string{"before", "meanwhile", "never"} {
			t.Run(name+" "+when, func(t *testing.T) {
				want := c.want
				if when == "never" && want == "released" {
					want = "nacked"
				}
				p := fake(c.program, c.args...)
				if when == "meanwhile" {
					p.verdictFor = time.Hour
				}
				if got := underWorker(t, h, p, when); !strings.HasPrefix(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// underWorker runs a program in the handler of a worker that is told to drain
// before the program is started, when it has ended, or not.
func underWorker(t *testing.T, h *house, p *program, when string) string {
	t.Helper()
	queue := strings.ReplaceAll(filepath.Base(t.Name()), "#", "_")
	h.fine("enqueue", queue, "1")
	c, err := client.New(h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan string, 1)
	var worker *client.Worker
	worker, err = c.NewWorker(client.WorkerOptions{
		Commands: []string{queue}, Handler: func(ctx context.Context, d client.Delivery) client.Outcome {
			if when == "before" {
				worker.Drain()
			}
			if when == "meanwhile" {
				defer time.AfterFunc(50*time.Millisecond, worker.Drain).Stop() // the verdict waits for an hour
			}
			o := p.work(ctx, d)
			done <- outcome(o)
			worker.Drain()
			return o
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Run(context.Background()); err != nil {
		t.Error(err)
	}
	return <-done
}

// As a terminal, systemd or Kubernetes stops them, with the last attempt at stake.
func TestN01WorkerAndProgramStoppedTogetherCostNoAttempt(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		watch := newWatcher(t)
		_, id, _ := command(t, said.URL, "enqueue", "slow", "1", "--max-attempts", "1")
		worker := start(t, "--url", said.URL, "work", "slow", "--", "/bin/sh", "-c", fakes["hold"], "sh", watch.path)
		pid, ended := watch.running()
		worker.signal(s)
		worker.err.await(t, "getting no more tasks") // on a busy machine 250 ms may be over sooner
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
		ended()
		if code := worker.exit(); code != exitFine {
			t.Errorf("%v: the worker ended with exit code %d, errors %q", s, code, worker.err)
		}
		_, out, _ := command(t, said.URL, "task", strings.TrimSpace(id))
		has(t, out, "PENDING", "failed      0 of 1")
		command(t, said.URL, "cancel", strings.TrimSpace(id))
	}
}

// A worker that slept through its lease ends its program; exit status 0 of that is
// no result of the task.
func TestN01ProgramEndedForALostLeaseDoesNotCompleteByItsStatus(t *testing.T) {
	t.Parallel()
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	watch := newWatcher(t)
	_, id, _ := command(t, said.URL, "enqueue", "slow", "1")
	id = strings.TrimSpace(id)
	worker := start(t, "--url", said.URL, "work", "slow", "--lease", "1s", "--", "/bin/sh", "-c", fakes["mute"], "sh", watch.path, "", "0")
	_, ended := watch.running()
	worker.signal(syscall.SIGSTOP)
	for out := ""; !strings.Contains(out, "failed      1 of 5"); {
		_, out, _ = command(t, said.URL, "task", id)
	}
	worker.signal(syscall.SIGCONT)
	ended()
	worker.err.await(t, id+"  slow  attempt 1 of 5 failed in ")
	_, out, _ := command(t, said.URL, "task", id)
	if strings.Contains(out, "COMPLETED") {
		t.Errorf("the task is %s", out)
	}
}

// The reporter was started by the program, which leads the group of both.
func TestX5KilledKeeperTakesItsProgramAlong(t *testing.T) {
	w := newWatcher(t)
	p := fake("parent", w.path)
	pid, ended, done := begins(t, context.Background(), p, w)
	for late := time.Now().Add(time.Minute); !p.begun.Load() && time.Now().Before(late); {
		runtime.Gosched() // until the keeper, too, has reported
	}
	leader, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(leader)).Output()
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended()
	if got := <-done; got != "nacked signal: killed" {
		t.Errorf("got %q", got)
	}
}

// A program was there if it could kill its keeper, whenever it did.
func TestX5ProgramThatKillsItsKeeperCostsAnAttempt(t *testing.T) {
	for range 25 {
		if got := outcome(fake("orphan").work(context.Background(), delivery("1"))); got != "nacked signal: killed" {
			t.Fatalf("got %q", got)
		}
	}
}

// A worker that dies in any way ends its programs, and what they have started.
func TestX5ProgramsEndWithTheirWorker(t *testing.T) {
	t.Parallel()
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	for name, script := range map[string]string{
		"it":                   fakes["hold"],
		"what it has started":  fakes["parent"],
		"one that is stubborn": fakes["stubborn"],
	} {
		watch := newWatcher(t)
		queue := strings.ReplaceAll(name, " ", "-")
		command(t, said.URL, "enqueue", queue, "1")
		worker := start(t, "--url", said.URL, "work", queue, "--", "/bin/sh", "-c", script, "sh", watch.path)
		_, ended := watch.running()
		worker.kill()
		ended()
	}
}

// As timeout of GNU stops them: the process, and at once its group.
func TestN13StopThatComesTwiceIsOne(t *testing.T) {
	h := newHouse(t)
	watch := newWatcher(t)
	w := h.work("slow", "--", "/bin/sh", "-c", fakes["polite"], "sh", watch.path)
	id := h.fine("enqueue", "slow", "1")
	pid, ended := watch.running()
	w.stops <- syscall.SIGTERM
	w.stops <- syscall.SIGTERM
	w.err.await(t, "getting no more tasks")
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended()
	if code := <-w.ends; code != exitFine {
		t.Errorf("the worker ended with exit code %d, errors %q", code, w.err)
	}
	has(t, h.fine("task", id), "COMPLETED")
}

// Whatever the first and the second stop are: the first drains, the second ends what
// runs unless it is the first again, and QUIT does so at any time.
func TestN13SecondStopEndsWhatRuns(t *testing.T) {
	const stop, hangup, quit = "TERM", "HUP", "QUIT"
	for _, first := range []string{stop, hangup, quit} {
		for _, second := range []string{"", stop, hangup, quit} {
			for _, gap := range []time.Duration{0, echoFor - 1, echoFor} {
				synctest.Test(t, func(t *testing.T) {
					tt, over, drained := newTerminal(""), make(chan struct{}), false
					signals := map[string]chan os.Signal{stop: tt.stops, hangup: make(chan os.Signal, 1), quit: make(chan os.Signal, 1)}
					s := &workerRun{app: tt.app, program: fake("print")}
					ended := make(chan bool, 1)
					go func() {
						hard, _ := s.awaitStops(func() { drained = true }, signals[hangup], signals[quit], over)
						ended <- hard
					}()
					signals[first] <- nil
					synctest.Wait()
					if !drained {
						t.Errorf("%s does not drain", first)
					}
					time.Sleep(gap)
					if second != "" {
						signals[second] <- nil
					}
					synctest.Wait()
					close(over)
					want := first == quit || second == quit || second != "" && gap >= echoFor
					if hard := <-ended; hard != want {
						t.Errorf("%s, and %s %s later: it ends what runs: %t", first, second, gap, hard)
					}
				})
			}
		}
	}
}

// QUIT, as by Ctrl-\, does not wait, and is no crash of this program.
func TestN13QuitEndsTheProgramsAtOnce(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	watch := newWatcher(t)
	_, id, _ := command(t, said.URL, "enqueue", "slow", "1")
	worker := start(t, "--url", said.URL, "work", "slow", "--", "/bin/sh", "-c", fakes["hold"], "sh", watch.path)
	_, ended := watch.running()
	worker.signal(syscall.SIGQUIT)
	ended()
	if code := worker.exit(); code != exitFailed || strings.Contains(worker.err.String(), "goroutine") {
		t.Errorf("the worker ended with exit code %d, errors %q", code, worker.err)
	}
	_, out, _ := command(t, said.URL, "task", strings.TrimSpace(id))
	has(t, out, "PENDING", "failed      0 of 5")
}

// A worker that has nothing in hand has nothing to complain of when it is stopped
// twice, here because its server does not answer.
func TestN13SecondStopOfAnIdleWorkerIsNoFailure(t *testing.T) {
	t.Parallel()
	server, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	worker := start(t, "--url", said.URL, "work", "slow", "--", "cat")
	worker.err.await(t, "Ctrl-C stops")
	server.signal(syscall.SIGSTOP)
	worker.signal(syscall.SIGTERM)
	worker.err.await(t, "no program runs")
	time.Sleep(echoFor) // what comes sooner is the first stop again
	worker.signal(syscall.SIGTERM)
	if code := worker.exit(); code != exitFine || strings.Contains(worker.err.String(), "stopped") {
		t.Errorf("the worker ended with exit code %d, errors %q", code, worker.err)
	}
}

// HUP drains a worker as TERM does, and its program neither sees it nor is cut.
func TestN13HangupDrainsTheWorker(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	watch := newWatcher(t)
	_, id, _ := command(t, said.URL, "enqueue", "slow", "1")
	worker := start(t, "--url", said.URL, "work", "slow", "--", "/bin/sh", "-c", fakes["polite"], "sh", watch.path)
	pid, ended := watch.running()
	worker.signal(syscall.SIGHUP)
	worker.err.await(t, "getting no more tasks")
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended()
	if code := worker.exit(); code != exitFine {
		t.Errorf("the worker ended with exit code %d, errors %q", code, worker.err)
	}
	_, out, _ := command(t, said.URL, "task", strings.TrimSpace(id))
	has(t, out, "COMPLETED", "failed      0 of 5")
}

// A worker whose log nobody reads any more goes on, without its lines.
func TestN13WorkerOutlivesTheReaderOfItsLog(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(t, "--url", said.URL, "work", "hash", "--", "cat")
	p.cmd.Stderr = writer
	p.begin()
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	if _, err := reader.Read(make([]byte, 1)); err != nil { // it has said something
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		code, out, errs := command(t, said.URL, "enqueue", "hash", "1", "--wait", "1m")
		if code != exitFine {
			t.Errorf("exit code %d, %s%s", code, out, errs)
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitFine {
		t.Errorf("the worker ended with exit code %d", code)
	}
}

// A worker whose log is full and not read works on and stops as any other.
func TestN13WorkerOutlivesAReaderThatDoesNotRead(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(make([]byte, 8<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	p := prepare(t, "--url", said.URL, "work", "hash", "--json", "--", "cat")
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	p.begin()
	code, out, errs := command(t, said.URL, "enqueue", "hash", "1", "--wait", "1m")
	if code != exitFine {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitFine {
		t.Errorf("the worker ended with exit code %d", code)
	}
	if err := errors.Join(reader.Close(), writer.Close()); err != nil {
		t.Error(err)
	}
}

// A program that can never be started ends its worker with a sentence, and the
// task is as it was.
func TestN03WorkerWhoseProgramCanNeverBeStartedEnds(t *testing.T) {
	h := newHouse(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	id := h.fine("enqueue", "hash", "1", "--max-attempts", "1")
	code, _, errs := h.run("", "work", "hash", "--", script)
	if code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
	has(t, errs, "no such file or directory", "no program could be started", "first line", "handed back in")
	has(t, h.fine("task", id), "PENDING", "failed      0 of 1", "deliveries  1")
}

// A worker that is short of descriptors does less at a time, and no task pays.
func TestN03WorkerWithoutDescriptorsCostsNoTask(t *testing.T) {
	t.Parallel()
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	const tasks = 30
	code, _, errs := command(t, said.URL, "enqueue", "hash", "--max-attempts", "1",
		"--file", fileOf(t, strings.Repeat("1\n", tasks)))
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	p := prepare(t)
	p.cmd.Path = "/bin/sh"
	p.cmd.Args = []string{"sh", "-c", `ulimit -n 40; exec "$0" "$@"`, os.Args[0],
		"--url", said.URL, "work", "hash", "--window", "20", "--json", "--", "cat"}
	p.begin()
	p.err.await(t, "too many open files; taking nothing for 1s")
	for strings.Count(p.out.String(), `"outcome":"completed"`) < tasks {
		<-p.out.wrote
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitFine {
		t.Errorf("exit code %d, errors %q", code, p.err)
	}
	if out := p.out.String(); strings.Contains(out, "nacked") || !strings.Contains(out, "released") {
		t.Errorf("the worker says %s", out)
	}
}

// A program that vanishes later costs no task an attempt, and comes back.
func TestN03WorkerWaitsForAProgramThatVanished(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	script := filepath.Join(t.TempDir(), "script")
	put := func() {
		if err := os.WriteFile(script+".new", []byte("#!/bin/sh\ncat\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(script+".new", script); err != nil {
			t.Fatal(err)
		}
	}
	put()
	w := h.work("hash", "--", script)
	h.fine("enqueue", "hash", "1", "--wait", "1m")
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	id := h.fine("enqueue", "hash", "2", "--max-attempts", "1")
	w.err.await(t, "taking nothing for 2s") // the second pause
	has(t, h.fine("task", id), "0 of 1")    // in progress or not
	put()
	has(t, h.fine("result", id, "--wait", "1m"), "COMPLETED")
	w.stop()
	has(t, w.err.String(), "could not be begun: start "+script+": no such file or directory; taking nothing for 1s")
}

// Each case in the table of the documents names the tests that show it.
func TestTableOfEndingsNamesTestsThatAreThere(t *testing.T) {
	page, err := os.ReadFile("../../docs/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	outside, failed := filepath.Glob("../../test/faults/*_test.go")
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range append(files, outside...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	_, table, _ := strings.Cut(string(page), "| What happens |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:]
	if len(rows) < 20 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row, -1)
		if len(names) == 0 {
			t.Errorf("no test is named in %s", row)
		}
		for _, name := range names {
			if !strings.Contains(code.String(), "func "+name[1]+"(") {
				t.Errorf("there is no %s", name[1])
			}
		}
	}
}
