package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// patience is how long the test waits for what must come.
const patience = time.Minute

// machine runs what the pods of the chart run, as processes: the program of this tree in place of the
// image, addresses in place of names, a directory in place of each volume, and files in place of Secrets.
type machine struct {
	t       *testing.T
	program string
	swaps   *strings.Replacer
	http    []string // where each node serves
	data    []string
	token   string
	joins   map[string]string // the Secret with the tokens of nodes
	running []*exec.Cmd
}

func newMachine(t *testing.T, nodes int) *machine {
	dir := t.TempDir()
	m := &machine{t: t, program: filepath.Join(dir, "codeq"), joins: map[string]string{}, running: make([]*exec.Cmd, nodes)}
	build := exec.Command("go", "build", "-o", m.program, "./cmd/codeq")
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	tokens := filepath.Join(dir, "tokens.yaml")
	m.token = m.must("token", "new", "--name", "admin", "--scope", "codeq:admin:all", "--scope", "producer", "--scope", "worker", "--command", "*", "--file", tokens)
	swaps := []string{"/etc/codeq/tokens/tokens.yaml", tokens}
	for i := range nodes {
		serves, peers := address(t), address(t)
		m.http, m.data = append(m.http, serves), append(m.data, filepath.Join(dir, fmt.Sprint(i)))
		swaps = append(swaps, fmt.Sprintf("codeq-%d-0.codeq-nodes:8080", i), serves, fmt.Sprintf("codeq-%d-0.codeq-nodes:8090", i), peers)
	}
	m.swaps = strings.NewReplacer(swaps...)
	t.Cleanup(m.kill)
	return m
}

// address is one that was free a moment ago.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (m *machine) must(args ...string) string {
	m.t.Helper()
	said, err := exec.Command(m.program, args...).Output()
	if err != nil {
		m.t.Fatalf("codeq %q: %v\n%s", args, err, said)
	}
	return strings.TrimSpace(string(said))
}

// at asks a node as its administrator.
func (m *machine) at(node int, args ...string) string {
	m.t.Helper()
	return m.must(append(args, "--url", "http://"+m.http[node], "--token", m.token)...)
}

// container is the process of a container. Without arguments it serves, as the image says.
func (m *machine) container(node int, c *core.Container) *exec.Cmd {
	env := []string{}
	secret := map[string]string{}
	for _, v := range c.Env {
		if v.ValueFrom != nil {
			secret["$("+v.Name+")"] = m.joins[v.ValueFrom.SecretKeyRef.Key]
			continue
		}
		env = append(env, v.Name+"="+m.here(node, v.Value))
	}
	args := []string{}
	for _, a := range c.Args {
		if value, is := secret[a]; is {
			a = value
		}
		args = append(args, m.here(node, a))
	}
	if len(args) == 0 {
		args = []string{"serve"}
	}
	cmd := exec.Command(m.program, args...)
	cmd.Env = env
	return cmd
}

// here puts what this machine has in place of what the pod of a node has. Its ports are those of its
// own addresses.
func (m *machine) here(node int, text string) string {
	own := strings.NewReplacer("0.0.0.0:8080", m.http[node], "0.0.0.0:8090", m.swaps.Replace(fmt.Sprintf("codeq-%d-0.codeq-nodes:8090", node)),
		"/var/lib/codeq/data", m.data[node])
	return own.Replace(m.swaps.Replace(text))
}

// start starts the pod of a node: its first containers one after another, then the server, until both
// probes are answered.
func (m *machine) start(node int, set *apps.StatefulSet) {
	m.t.Helper()
	pod := &set.Spec.Template.Spec
	for i := range pod.InitContainers {
		if said, err := m.container(node, &pod.InitContainers[i]).CombinedOutput(); err != nil {
			m.t.Fatalf("%s of %s: %v\n%s", pod.InitContainers[i].Name, set.Name, err, said)
		}
	}
	server := m.container(node, &pod.Containers[0])
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.running[node] = server
	for _, probe := range []*core.Probe{pod.Containers[0].LivenessProbe, pod.Containers[0].ReadinessProbe} {
		for until := time.Now().Add(patience); !m.answers(node, probe.HTTPGet.Path); <-time.After(50 * time.Millisecond) {
			if time.Now().After(until) {
				m.stop(node, set)
				m.t.Fatalf("%s does not answer %s\n%s", set.Name, probe.HTTPGet.Path, log.String())
			}
		}
	}
}

func (m *machine) answers(node int, path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.http[node]+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// stop is what a kubelet does: TERM, and an end within the grace of the pod.
func (m *machine) stop(node int, set *apps.StatefulSet) {
	m.t.Helper()
	server := m.running[node]
	m.running[node] = nil
	ended := make(chan error, 1)
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		m.t.Fatal(err)
	}
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			m.t.Errorf("%s ends with %v", set.Name, err)
		}
	case <-time.After(time.Duration(*set.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second):
		_ = server.Process.Kill() // it has just not ended
		m.t.Errorf("%s has not ended within its grace", set.Name)
	}
}

func (m *machine) kill() {
	for _, server := range m.running {
		if server != nil {
			_ = server.Process.Kill() // the test is over
			_ = server.Wait()
		}
	}
}

// voters waits until so many nodes vote.
func (m *machine) voters(want int) {
	m.t.Helper()
	var said string
	for until := time.Now().Add(patience); time.Now().Before(until); <-time.After(100 * time.Millisecond) {
		// While the lead changes hands nobody knows.
		var status struct{ Voters, Reachable int }
		out, err := exec.Command(m.program, "cluster", "status", "--json", "--url", "http://"+m.http[0], "--token", m.token).CombinedOutput()
		if said = string(out); err == nil && json.Unmarshal(out, &status) == nil && status.Voters == want && status.Reachable == want {
			return
		}
	}
	m.t.Fatalf("not %d voters: %s", want, said)
}

// The pods do what the chart is for: one node serves; with its data it becomes the first of three, whose
// tokens are made as the notes say; and each of them stops and starts again.
func TestPodsOfTheChartServeAndBecomeACluster(t *testing.T) {
	one := makeAll(t, map[string]any{"tokensSecret": "codeq-tokens"}).sets
	three := makeAll(t, valuesOf(t, "values-three.yaml")).sets
	m := newMachine(t, len(three))
	m.start(0, &one[0])
	id := m.at(0, "enqueue", "pack", `{"n":1}`)
	m.stop(0, &one[0])

	m.start(0, &three[0])
	m.voters(1)
	for i := 1; i < len(three); i++ {
		m.joins[fmt.Sprintf("node-%d", i)] = m.at(0, "cluster", "token")
		m.start(i, &three[i])
	}
	m.voters(len(three))
	if said := m.at(2, "claim", "pack", "--json"); !strings.Contains(said, id) {
		t.Errorf("the task %s of the first node is not claimed at the third: %s", id, said)
	}
	for i := range three {
		m.stop(i, &three[i])
		m.start(i, &three[i])
		m.voters(len(three))
	}
}
