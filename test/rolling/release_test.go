package rolling

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeq/test/blackbox"
	"codeq/wire"
)

var releaseMade = flag.String("rolling.release", "", "keep a data directory of this program as that of this version, in testdata")

// forEver has the server keep what has ended: the directories are read years after they were made.
var forEver = []string{"--retention", "0s", "--dlq-retention", "0s"}

// kept is what the maker of a directory leaves beside it: each task as it was at the end.
type kept struct {
	Tasks map[string]json.RawMessage `json:"tasks"`
}

// asker asks one server, and ends the test when it is refused.
type asker struct {
	t   *testing.T
	api *blackbox.API
}

func (a *asker) do(method, path, body string) []byte {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := a.api.Do(ctx, method, path, body)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.Body
}

func (a *asker) post(body string) wire.TaskID {
	a.t.Helper()
	task, err := wire.ParseTask(a.do(http.MethodPost, "/tasks", body))
	if err != nil {
		a.t.Fatal(err)
	}
	return task.ID
}

// readyTask is posted again by who reads the directory: its key must find it.
const readyTask = `{"command":"paused","payload":{"file":"ready.iso","size":12345678901234567890},"priority":7,"labels":{"customer":"owl"},"idempotencyKey":"ready-1"}`

// claim takes the next task of a queue, and returns its id and lease token.
func (a *asker) claim(command, more string) (id, token string) {
	a.t.Helper()
	var task struct{ ID, LeaseToken string }
	if err := json.Unmarshal(a.do(http.MethodPost, "/tasks/claim", `{"commands":["`+command+`"]`+more+`}`), &task); err != nil {
		a.t.Fatal(err)
	}
	return task.ID, task.LeaseToken
}

// fill makes a task in every state that a task can rest in, and the settings that are kept beside.
func (a *asker) fill() map[string]string {
	ids := map[string]string{}
	make := func(name, command, more string) {
		ids[name] = a.post(`{"command":"` + command + `","payload":{"file":"` + name + `.iso","size":12345678901234567890}` + more + `}`).String()
	}
	end := func(name, verb, body string) {
		id, token := a.claim("of-"+name, "")
		if id != ids[name] {
			a.t.Fatalf("%s is %s, and %s was claimed", name, ids[name], id)
		}
		a.do(http.MethodPost, "/tasks/"+id+"/"+verb, strings.Replace(body, "TOKEN", token, 1))
	}
	a.do(http.MethodPut, "/admin/queues/paused", `{"maxInProgress":7}`)
	a.do(http.MethodPost, "/admin/queues/paused/pause", "")
	a.do(http.MethodPut, "/admin/queues/keyed", `{"perKey":{"inProgress":1}}`)
	a.do(http.MethodPut, "/admin/limits/default", `{"pendingTasks":1000000}`)
	ids["ready"] = a.post(readyTask).String()
	make("delayed", "delayed", `,"runAt":"2035-01-01T00:00:00Z"`)
	make("leased", "of-leased", "")
	if id, _ := a.claim("of-leased", `,"leaseSeconds":3600`); id != ids["leased"] {
		a.t.Fatalf("%s was claimed", id)
	}
	make("holds", "keyed", `,"concurrencyKey":"one"`)
	a.claim("keyed", `,"leaseSeconds":3600`)
	make("limited", "keyed", `,"concurrencyKey":"one"`)
	make("completed", "of-completed", "")
	end("completed", "result", `{"result":{"sha256":"e3b0c442"},"leaseToken":"TOKEN"}`)
	make("dead", "of-dead", `,"maxAttempts":1`)
	end("dead", "nack", `{"reason":"the disk is full","leaseToken":"TOKEN"}`)
	make("retried", "of-retried", `,"maxAttempts":5`)
	end("retried", "nack", `{"reason":"try later","delaySeconds":315360000,"leaseToken":"TOKEN"}`)
	make("failed", "of-failed", "")
	end("failed", "result", `{"status":"FAILED","error":"no such file","leaseToken":"TOKEN"}`)
	make("cancelled", "cancelled", "")
	a.do(http.MethodPost, "/tasks/"+ids["cancelled"]+"/cancel", "")
	return ids
}

// TestDirectoryOfEachRelease starts this program over the data directories that each release has left, of a
// server alone and of the only node of a cluster: what docs/upgrading.md promises. With -rolling.release it
// makes them.
func TestDirectoryOfEachRelease(t *testing.T) {
	if *releaseMade != "" {
		alone := filepath.Join(t.TempDir(), "data")
		keepRelease(t, filepath.Join("testdata", *releaseMade+".tar.gz"), alone)
		node, address := filepath.Join(t.TempDir(), "data"), blackbox.Address(t)
		codeq(t, "cluster", "init", "--data", node, "--address", address)
		keepRelease(t, filepath.Join("testdata", *releaseMade+"-node.tar.gz"), node, "--peer-listen", address)
	}
	archives, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("there is no directory of a release: %v", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) { opensRelease(t, archive) })
	}
}

func opensRelease(t *testing.T, archive string) {
	dir := t.TempDir()
	unpack(t, archive, dir)
	text, err := os.ReadFile(filepath.Join(dir, "kept.json"))
	var was kept
	if err := errors.Join(err, json.Unmarshal(text, &was)); err != nil {
		t.Fatal(err)
	}
	codeq(t, "doctor", filepath.Join(dir, "data"))
	args := forEver
	if strings.HasSuffix(archive, "-node.tar.gz") {
		args = append(slices.Clone(args), "--peer-listen", blackbox.Address(t))
	}
	s := blackbox.ServeOver(t, filepath.Join(dir, "data"), args...)
	a := &asker{t, blackbox.NewAPI(s.Addr)}
	defer a.api.Close()
	tasks := map[string]*wire.Task{}
	for name, text := range was.Tasks {
		before, err := wire.ParseTask(text)
		if err != nil {
			t.Fatalf("%s as it was: %v", name, err)
		}
		now, err := wire.ParseTask(a.do(http.MethodGet, "/tasks/"+before.ID.String(), ""))
		if err != nil {
			t.Fatal(err)
		}
		tasks[name] = now
		if string(now.Payload) != string(before.Payload) || now.Command != before.Command || now.Priority != before.Priority {
			t.Errorf("%s is %+v and was %+v", name, now, before)
		}
		// A lease may have ended meanwhile, and its task is ready again.
		if now.Status != before.Status && before.Status != wire.StatusInProgress {
			t.Errorf("%s is %s and was %s", name, now.Status, before.Status)
		}
	}
	if result := a.do(http.MethodGet, "/tasks/"+tasks["completed"].ID.String()+"/result", ""); !strings.Contains(string(result), `{"sha256":"e3b0c442"}`) {
		t.Errorf("the result is %s", result)
	}
	if again := a.post(readyTask); again != tasks["ready"].ID {
		t.Errorf("the key finds %s, and its task is %s", again, tasks["ready"].ID)
	}
	if found := a.do(http.MethodGet, "/admin/tasks?label=customer%3Dowl", ""); !strings.Contains(string(found), tasks["ready"].ID.String()) {
		t.Errorf("the label finds %s", found)
	}
	if queue := a.do(http.MethodGet, "/admin/queues/paused", ""); !strings.Contains(string(queue), `"paused":true`) || !strings.Contains(string(queue), `"maxInProgress":7`) {
		t.Errorf("the queue is %s", queue)
	}
	if limits := a.do(http.MethodGet, "/admin/limits/default", ""); !strings.Contains(string(limits), `"pendingTasks":1000000`) {
		t.Errorf("the limits are %s", limits)
	}
	// And it works on: a task that the release has left is done.
	a.do(http.MethodPost, "/admin/queues/paused/resume", "")
	id, token := a.claim("paused", "")
	if id != tasks["ready"].ID.String() {
		t.Errorf("%s was claimed, expected %s", id, tasks["ready"].ID)
	}
	a.do(http.MethodPost, "/tasks/"+id+"/result", `{"result":{},"leaseToken":"`+token+`"}`)
	a.do(http.MethodPost, "/admin/tasks/"+tasks["dead"].ID.String()+"/replay", "")
	if id, _ := a.claim("of-dead", ""); id != tasks["dead"].ID.String() {
		t.Errorf("%s was claimed after the replay of %s", id, tasks["dead"].ID)
	}
}

// codeq runs a command of this program.
func codeq(t *testing.T, args ...string) {
	t.Helper()
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("codeq %q: %v\n%s", args, err, out)
	}
}

// keepRelease runs this program over a directory, fills it and keeps it.
func keepRelease(t *testing.T, archive, dir string, args ...string) {
	s := blackbox.ServeOver(t, dir, append(slices.Clone(forEver), args...)...)
	a := &asker{t, blackbox.NewAPI(s.Addr)}
	defer a.api.Close()
	was, ids := kept{map[string]json.RawMessage{}}, a.fill()
	s.Stop() // what is before is in tables, what comes behind in a log alone
	s.Start()
	ids["late"] = a.post(`{"command":"late","payload":"by the log"}`).String()
	for name, id := range ids {
		was.Tasks[name] = a.do(http.MethodGet, "/tasks/"+id, "")
	}
	text, err := json.MarshalIndent(was, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(f)
	to := tar.NewWriter(packed)
	err = errors.Join(to.WriteHeader(&tar.Header{Name: "kept.json", Mode: 0o600, Size: int64(len(text))}), last(to.Write(text)),
		filepath.WalkDir(s.Dir, func(at string, entry os.DirEntry, err error) error {
			// These two are megabytes of zeros, which a server makes where they are missing.
			if err != nil || !entry.Type().IsRegular() || entry.Name() == "ballast" || entry.Name() == "spare" {
				return err
			}
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(s.Dir, at)
			return errors.Join(err, to.WriteHeader(&tar.Header{Name: "data/" + name, Mode: 0o600, Size: int64(len(content))}), last(to.Write(content)))
		}), to.Close(), packed.Close(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
}

func last(_ int, err error) error { return err }

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(packed); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, h.Name)
		content, err := io.ReadAll(files)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, content, 0o600)); err != nil {
			t.Fatal(fmt.Errorf("unpack %s: %w", h.Name, err))
		}
	}
}
