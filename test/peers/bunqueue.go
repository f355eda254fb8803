package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// bunqueueDir is where its load and its packages are, from the root of the repository.
const bunqueueDir = "test/peers"

// bun is the runtime, which npm has installed for the system of this machine.
var bun = bunRuntime()

func bunRuntime() string {
	found, err := filepath.Glob(filepath.Join(bunqueueDir, "node_modules", "@oven", "bun-*", "bin", "bun"))
	if err != nil || len(found) == 0 {
		return "bun"
	}
	return found[0]
}

// bunqueue is measured by a program of its own, because its client needs the runtime that
// it is written for. It commits to SQLite before it answers, which does not sync each
// commit.
func bunqueue() *queue {
	q := &queue{name: "bunqueue"}
	q.find = func(*settings) error {
		if err := need(bun, "run npm ci in "+bunqueueDir); err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(bunqueueDir, "node_modules", "bunqueue", "package.json"))
		if err != nil {
			return err
		}
		var p struct{ Version string }
		err = json.Unmarshal(data, &p)
		q.version = p.Version
		return err
	}
	q.ways = []way{
		{name: "durable", synced: "no", measure: bunqueueLoad("durable", 1)},
		{name: "default", synced: "no", measure: bunqueueLoad("default", 1)},
		{name: "default, addBulk 64", pipelined: true, synced: "no", measure: bunqueueLoad("default", 64)},
	}
	return q
}

func bunqueueLoad(kind string, batch int) func(ctx context.Context, s *settings, dir string) (*figure, error) {
	return func(ctx context.Context, s *settings, dir string) (f *figure, err error) {
		server, err := startBunqueue(dir)
		if err != nil {
			return nil, err
		}
		defer server.stop()
		probe, err := eventually(ctx, server, func() (net.Conn, error) { return net.Dial("tcp", server.addr) })
		if err != nil {
			return nil, err
		}
		defer probe.Close()
		_, port, _ := net.SplitHostPort(server.addr)
		load := exec.CommandContext(ctx, bun, filepath.Join(bunqueueDir, "bunqueue.mjs"), port, strconv.Itoa(producers), strconv.Itoa(batch),
			fmt.Sprint(s.warmUp.Milliseconds()), fmt.Sprint(s.measure.Milliseconds()), kind)
		load.Stderr = os.Stderr
		out, err := load.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := load.Start(); err != nil {
			return nil, err
		}
		defer func() {
			if e := load.Wait(); err == nil {
				err = e
			}
		}()
		return readLoad(bufio.NewReader(out), server)
	}
}

func startBunqueue(dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	other, err := freePort()
	if err != nil {
		return nil, err
	}
	return launch(port, []string{"HOST=127.0.0.1"}, bun, filepath.Join(bunqueueDir, "node_modules", ".bin", "bunqueue"), "start",
		"--tcp-port", port, "--http-port", other, "--data-path", filepath.Join(dir, "queue.db"))
}

// readLoad reads the server's figures when the load says so.
func readLoad(out *bufio.Reader, server *server) (*figure, error) {
	expect := func(format string, args ...any) error {
		line, err := out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the load ended: %w", err)
		}
		if _, err := fmt.Sscanf(line, format, args...); err != nil {
			return fmt.Errorf("the load said %q: %w", line, err)
		}
		return nil
	}
	if err := expect("begin\n"); err != nil {
		return nil, err
	}
	before, err := server.cpu()
	if err != nil {
		return nil, err
	}
	var tasks, seconds float64
	if err := expect("end %f %f\n", &tasks, &seconds); err != nil {
		return nil, err
	}
	after, err := server.cpu()
	if err != nil {
		return nil, err
	}
	mib, err := server.mib()
	if err != nil {
		return nil, err
	}
	var created, lost, duplicates, confirmed, completed int64
	if err := expect("counts %d %d %d %d %d\n", &created, &lost, &duplicates, &confirmed, &completed); err != nil {
		return nil, err
	}
	if err := wrongCounts(created, lost, duplicates, confirmed, completed); err != nil {
		return nil, err
	}
	return &figure{tasks / seconds, float64((after - before).Microseconds()) / tasks, mib}, nil
}
