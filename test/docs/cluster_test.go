package docs

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
)

// firstNode is a node of a cluster that leads.
func firstNode(t *testing.T) *blackbox.Server {
	t.Helper()
	server := blackbox.Serve(t)
	server.Stop()
	makeNode(t, server, "init")
	until(t, "the node leads", func() bool { return strings.Contains(server.Metrics(), "codeq_cluster_voters_reachable 1") })
	return server
}

// makeNode makes the directory of a server that does not run that of a node, and starts it. It
// returns the address of the node.
func makeNode(t *testing.T, server *blackbox.Server, command ...string) string {
	t.Helper()
	path, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	at := blackbox.Address(t)
	args := append(append([]string{"cluster"}, command...), "--data", server.Dir, "--address", at)
	if said, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	server.Start()
	return at
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// ofACluster are exchanges with a leader that only a node of a cluster has.
func ofACluster(t *testing.T) []*exchange {
	t.Helper()
	leader := firstNode(t)
	ask := func(method, path string) *exchange {
		t.Helper()
		r, err := http.NewRequest(method, leader.URL()+"/v1/codeq/admin/cluster"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return &exchange{method, "/v1/codeq/admin/cluster" + path, "", response.StatusCode, response.Header, string(body)}
	}
	defer http.DefaultClient.CloseIdleConnections()
	all := []*exchange{ask("GET", ""), ask("POST", "/tokens"), ask("POST", "/transfer")}
	var made struct{ Token, Leader string }
	if err := errors.Join(json.Unmarshal([]byte(all[0].body), &made), json.Unmarshal([]byte(all[1].body), &made)); err != nil {
		t.Fatal(err)
	}
	further := blackbox.Serve(t)
	further.Stop()
	if err := os.RemoveAll(further.Dir); err != nil {
		t.Fatal(err)
	}
	at := makeNode(t, further, "join", made.Token)
	until(t, "the node is a member", func() bool { return strings.Contains(ask("GET", "").body, at) })
	return append(all, ask("POST", "/transfer?node="+made.Leader), ask("DELETE", "/nodes/"+at), ask("DELETE", "/nodes/"+made.Leader))
}
