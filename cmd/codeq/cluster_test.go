package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// machines are the processes of a cluster of three.
type machines struct {
	t     *testing.T
	nodes []*blackbox.Server
	// at are the addresses of their ports.
	at []string
}

// codeq runs the built program, and returns what it said and whether it did its work.
func (m *machines) codeq(args ...string) (said string, done bool) {
	m.t.Helper()
	path, err := blackbox.Program()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	return string(out), err == nil
}

// must is codeq for a command that works.
func (m *machines) must(args ...string) string {
	m.t.Helper()
	said, done := m.codeq(args...)
	if !done {
		m.t.Fatalf("codeq %s: %s", strings.Join(args, " "), said)
	}
	return said
}

// urls are all addresses, as a user gives them.
func (m *machines) urls() string {
	var all []string
	for _, n := range m.nodes {
		all = append(all, n.URL())
	}
	return strings.Join(all, ",")
}

// node makes a node of the directory of a server that does not run, and starts it.
func (m *machines) node(command ...string) {
	m.t.Helper()
	s, at := blackbox.Serve(m.t), blackbox.Address(m.t)
	s.Stop()
	if command[1] == "join" {
		if err := os.RemoveAll(s.Dir); err != nil {
			m.t.Fatal(err)
		}
	}
	m.must(append(command, "--data", s.Dir, "--address", at)...)
	s.Start()
	m.nodes, m.at = append(m.nodes, s), append(m.at, at)
}

// status is what a node says, once it is as wanted.
func (m *machines) status(url, what string, wanted func(*wire.ClusterStatus) bool) *wire.ClusterStatus {
	m.t.Helper()
	var said string
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); <-time.After(50 * time.Millisecond) {
		s := &wire.ClusterStatus{}
		var done bool
		if said, done = m.codeq("cluster", "status", "--json", "--url", url); done && json.Unmarshal([]byte(said), s) == nil && wanted(s) {
			return s
		}
	}
	m.t.Fatalf("%s: not in time; the status is %s", what, said)
	return nil
}

// leads is the place of the node that leads.
func (m *machines) leads(s *wire.ClusterStatus) int {
	for _, n := range s.Nodes {
		for i, at := range m.at {
			if n.Node == s.Leader && n.Address == at {
				return i
			}
		}
	}
	m.t.Fatalf("no leader in %+v", s)
	return 0
}

// backedUp makes a cluster of a backup that a follower has made.
func (m *machines) backedUp(follower *blackbox.Server) {
	m.t.Helper()
	from, to := filepath.Join(m.t.TempDir(), "backup"), filepath.Join(m.t.TempDir(), "data")
	m.must("backup", from, "--url", follower.URL())
	m.must("cluster", "init", "--from", from, "--data", to, "--address", blackbox.Address(m.t))
	m.must("doctor", to)
	if strings.Contains(m.nodes[0].Metrics(), "codeq_last_backup_timestamp_seconds") {
		m.t.Error("the leader has made the backup")
	}
}

// Three processes are made a cluster by its commands: any node takes requests, the lead moves, and a
// node that is lost for ever is replaced.
func TestThreeProcessesAreACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers") // runs without -short
	}
	m := &machines{t: t}
	m.node("cluster", "init")
	first := m.nodes[0].URL()
	m.status(first, "the first node leads", func(s *wire.ClusterStatus) bool { return s.Voters == 1 })
	if said, done := m.codeq("cluster", "transfer", "--url", first); done || !strings.Contains(said, "no other voter answers") {
		t.Errorf("the only node hands over: %s", said)
	}
	for range 2 {
		m.node("cluster", "join", strings.TrimSpace(m.must("cluster", "token", "--url", first)))
	}
	s := m.status(m.nodes[2].URL(), "three vote", func(s *wire.ClusterStatus) bool { return s.Voters == 3 && s.MayLose == 1 })
	if m.leads(s) != 0 {
		t.Errorf("another node leads: %+v", s)
	}
	m.must("enqueue", "c", "1", "--url", m.nodes[1].URL())
	if said := m.must("claim", "c", "--json", "--url", m.nodes[2].URL()); !strings.Contains(said, `"command":"c"`) {
		t.Errorf("claimed %s", said)
	}
	m.backedUp(m.nodes[2])
	if said, done := m.codeq("cluster", "remove", m.at[1], "--url", first); done || !strings.Contains(said, "2 voters can lose no more nodes than 1") {
		t.Errorf("two voters are left: %s", said)
	}
	if said, done := m.codeq("cluster", "remove", m.at[0], "--url", first); done || !strings.Contains(said, "hand the lead over first") {
		t.Errorf("the leader is removed: %s", said)
	}
	moved := &wire.ClusterStatus{}
	said := m.must("cluster", "transfer", m.at[1], "--json", "--url", m.urls())
	if err := json.Unmarshal([]byte(said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]), moved); err != nil || m.leads(moved) != 1 {
		t.Errorf("the lead was handed over with %s", said)
	}
	m.status(first, "the lead has moved", func(s *wire.ClusterStatus) bool { return m.leads(s) == 1 })

	m.nodes[1].Kill()
	made := m.must("enqueue", "c", "2", "--key", "k", "--url", m.urls(), "-q")
	m.status(m.urls(), "another node leads", func(s *wire.ClusterStatus) bool { return m.leads(s) != 1 && s.Reachable == 2 })
	if said := m.must("cluster", "remove", m.at[1], "--json", "--url", m.urls()); !strings.HasSuffix(said, `{"node":"`+m.at[1]+"\"}\n") {
		t.Errorf("removed with %s", said)
	}
	if said := m.must("task", "list", "c", "--url", m.urls(), "-q"); !strings.HasSuffix(strings.TrimSpace(made), strings.TrimSpace(said)) {
		t.Errorf("the task that waits is %s, made was %s", said, made)
	}
	// Its directory is refused for ever; an empty one at the same address is a new node.
	gone := m.nodes[1]
	token := strings.TrimSpace(m.must("cluster", "token", "--url", m.urls()))
	if said, done := m.codeq("cluster", "join", token, "--data", gone.Dir, "--address", m.at[1]); done || !strings.Contains(said, "is not empty") {
		t.Errorf("joined with a directory that is not empty: %s", said)
	}
	if err := os.Rename(gone.Dir, filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	if said := m.must("cluster", "join", token, "--data", gone.Dir, "--address", m.at[1], "--json"); !strings.HasSuffix(said, `"data":"`+gone.Dir+"\"}\n") {
		t.Errorf("joined with %s", said)
	}
	if said, done := m.codeq("serve", "--data", gone.Dir, "--artifacts-dir", t.TempDir()); done || !strings.Contains(said, "set artifacts-shared") {
		t.Errorf("a node takes a directory of files of its own: %s", said)
	}
	if said := m.must("cluster", "join", token, "--if-needed", "--data", gone.Dir, "--address", m.at[1]); said != "" {
		t.Errorf("a node joins once more: %s", said)
	}
	gone.Start()
	m.status(m.urls(), "three vote again", func(s *wire.ClusterStatus) bool { return s.Voters == 3 && s.MayLose == 1 })
	if said, done := m.codeq("cluster", "join", token, "--data", t.TempDir(), "--address", "127.0.0.1:9"); done || !strings.Contains(said, "each counts once") {
		t.Errorf("a token counts twice: %s", said)
	}
	m.alone(made)
}

// alone takes the leader its followers, and asks it for a task that was made: every request has an
// answer. Then it says what it has to who is content with that, and that no node leads to others.
func (m *machines) alone(made string) {
	m.t.Helper()
	lead := m.leads(m.status(m.urls(), "a node leads", func(s *wire.ClusterStatus) bool { return s.Leader != "" }))
	last, id := m.nodes[lead], strings.TrimSpace(made[strings.LastIndexAny(strings.TrimSpace(made), "\n")+1:])
	for i, other := range m.nodes {
		if i != lead {
			other.Kill()
		}
	}
	var asked sync.WaitGroup
	for range 25 {
		for _, r := range []struct{ method, path, body string }{{"GET", "/tasks/" + id, ""}, {"POST", "/tasks", `{"command":"c","payload":3}`}} {
			asked.Go(func() {
				said, err := m.ask(r.method, last.URL()+"/v1/codeq"+r.path, r.body, "")
				if err != nil || said.StatusCode == http.StatusInsufficientStorage {
					m.t.Errorf("%s %s while the leader is lost: %v, %v", r.method, r.path, said, err)
				}
			})
		}
		<-time.After(100 * time.Millisecond)
	}
	asked.Wait()
	for _, c := range []struct{ read, says string }{{"stale", `"id":"` + id + `"`}, {"", `"code":"not_leader"`}} {
		response, err := m.ask(http.MethodGet, last.URL()+"/v1/codeq/tasks/"+id, "", c.read)
		if err != nil {
			m.t.Fatal(err)
		}
		body := response.Status
		age, isAge := strconv.Atoi(response.Header.Get("Codeq-Read-Age"))
		if !strings.Contains(body, c.says) || (isAge == nil) != (c.read == "stale") || age < 0 || age > 60_000 {
			m.t.Errorf("Codeq-Read: %q: %d %s, %v", c.read, response.StatusCode, body, response.Header)
		}
	}
}

// What stands before each start of a container makes a node once.
func TestClusterInitIsDoneOnce(t *testing.T) {
	init := []string{"cluster", "init", "--data", filepath.Join(t.TempDir(), "data"), "--address", "127.0.0.1:9"}
	code, first, errs := codeq("", append(init, "--if-needed")...)
	if code != exitFine || len(strings.Fields(first)) != tokensOfInit {
		t.Fatalf("exit code %d, output %q, errors %q", code, first, errs)
	}
	if code, out, errs := codeq("", append(init, "--if-needed")...); code != exitFine || out+errs != "" {
		t.Errorf("once more: exit code %d, output %q, errors %q", code, out, errs)
	}
	if code, _, errs := codeq("", init...); code == exitFine {
		t.Errorf("a node is made over another one: %q", errs)
	}
}

// ask sends a request over a connection of its own; the body of the answer is in its Status.
func (m *machines) ask(method, url, body, read string) (*http.Response, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Close = true
	r.Header.Set("Codeq-Read", read)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	response.Status += " " + string(text)
	return response, errors.Join(err, response.Body.Close())
}
