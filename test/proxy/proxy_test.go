package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/client"
	"codeq/test/blackbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit)) }

// patience is how long a test waits for something that must come.
const patience = time.Minute

// ours is a file of deploy/proxy with the addresses of a test in place of those that it shows.
func ours(t *testing.T, name string, swaps ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "proxy", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(swaps); i += 2 {
		if !strings.Contains(string(text), swaps[i]) {
			t.Fatalf("%s has no %q", name, swaps[i])
		}
	}
	return strings.NewReplacer(swaps...).Replace(string(text))
}

// run starts a proxy, which ends with the test.
func run(t *testing.T, address, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it fails for one that has ended
		_ = cmd.Wait()                       // nginx and Caddy end with 0 or by the signal
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // nothing tells when another program listens
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close() // nothing was sent
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// asked skips a test that nobody has asked for.
func asked(t *testing.T) {
	t.Helper()
	if os.Getenv("CODEQ_TEST_DEPLOY") == "" {
		t.Skip("CODEQ_TEST_DEPLOY is not set") // make deploy-test sets it, and needs the proxies
	}
}

func TestNginx(t *testing.T) {
	asked(t)
	s, address, dir := blackbox.Serve(t), blackbox.Address(t), t.TempDir()
	site := filepath.Join(dir, "codeq.conf")
	whole := fmt.Sprintf("daemon off;\npid %[1]s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n", dir)
	if os.Geteuid() == 0 {
		whole = "user root;\n" + whole
	}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	write(t, site, ours(t, "nginx.conf", "127.0.0.1:8080", s.Addr, "listen 8443", "listen "+address))
	write(t, filepath.Join(dir, "nginx.conf"), whole+"include "+site+";\n}\n")
	run(t, address, "nginx", "-e", "stderr", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	worksThrough(t, "http://"+address+"/queue")
}

func TestCaddy(t *testing.T) {
	asked(t)
	s, address, dir := blackbox.Serve(t), blackbox.Address(t), t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	write(t, file, "{\nadmin off\nauto_https off\n}\n"+ours(t, "Caddyfile", "\ncodeq.example.com {", "\nhttp://"+address+" {", "127.0.0.1:8080", s.Addr))
	run(t, address, "caddy", "run", "--config", file, "--adapter", "caddyfile")
	worksThrough(t, "http://"+address+"/queue")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// worksThrough posts a task, has it done over a WebSocket, hears of it in a stream, and opens the pages.
func worksThrough(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/codeq/events?kind=events&commands=pack", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	browser := &http.Client{Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()
	events, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	c, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A payload larger than what nginx keeps in memory by itself.
	task, err := c.Enqueue(ctx, "pack", map[string]string{"text": strings.Repeat("x", 60_000)})
	if err != nil {
		t.Fatal(err)
	}
	page, err := browser.Get(url + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	if page.StatusCode != http.StatusOK || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page is answered %d, %s", page.StatusCode, page.Header.Get("Content-Type"))
	}
	works, end := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() {
		worked <- client.Work(works, c, "pack", func(_ context.Context, in map[string]string) (map[string]int, error) {
			return map[string]int{"length": len(in["text"])}, nil
		})
	}()
	length, err := client.ResultOf[map[string]int](ctx, c, task.TaskID)
	if err != nil || length["length"] != 60_000 {
		t.Errorf("the result is %v, %v", length, err)
	}
	// The stream stays open, so what is read here has passed the proxy before its end.
	lines := bufio.NewScanner(events.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), task.TaskID.String()) {
	}
	if err := lines.Err(); err != nil || events.StatusCode != http.StatusOK || !strings.Contains(lines.Text(), task.TaskID.String()) {
		t.Errorf("the stream of events, with status %d, ends at %q: %v", events.StatusCode, lines.Text(), err)
	}
	end()
	<-worked
}
