//go:build unix && !clientonly

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeq/loadtest"
)

// announceFor is how long a server may take to say where it listens.
const announceFor = 30 * time.Second

// onFreshDirectory makes a directory, measures on it and removes it.
func (x *bench) onFreshDirectory(ctx context.Context, w loadtest.Workload) (err error) {
	dir, err := os.MkdirTemp(x.Dir, "codeq-bench-")
	if err != nil {
		return fmt.Errorf("make directory for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if inMemory(dir) {
		x.say("%s is in memory, where an fsync takes no time: name a directory on a disk with --dir", dir)
	}
	measureAround := func() (err error) {
		times, err := syncTimes(dir)
		if x.fsyncs = append(x.fsyncs, times...); err != nil || !x.HTTP {
			return err
		}
		perSecond, err := loadtest.BareHTTP(ctx, w, min(w.MeasureFor, time.Second))
		x.bares = append(x.bares, perSecond)
		return err
	}
	if err := measureAround(); err != nil {
		return err
	}
	args := []string{"--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data")}
	if x.Shards > 0 {
		args = append(args, "--shards", strconv.Itoa(x.Shards))
	}
	ctx, s, stop, err := ownServer(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s.after = measureAround
	return x.measure(ctx, w, s)
}

// syncTimes writes small blocks in place and measures in microseconds how long each takes to be
// on disk.
func syncTimes(dir string) (micros []float64, err error) {
	const (
		blockBytes = 4096
		blocks     = 200
		patience   = time.Second
	)
	defer func() {
		if err != nil {
			err = fmt.Errorf("measure fsync: %w", err)
		}
	}()
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := f.Write(make([]byte, blocks*blockBytes)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	block := bytes.Repeat([]byte{1}, blockBytes)
	began := time.Now()
	for i := int64(0); i < blocks && time.Since(began) < patience; i++ {
		start := time.Now()
		if _, err := f.WriteAt(block, i*blockBytes); err != nil {
			return nil, err
		}
		if err := syncData(f); err != nil {
			return nil, err
		}
		micros = append(micros, float64(time.Since(start))/float64(time.Microsecond))
	}
	return micros, nil
}

// median is the median of figures, nil of none.
func median(figures []float64) *float64 {
	n := len(figures)
	if n == 0 {
		return nil
	}
	slices.Sort(figures)
	return loadtest.Rounded((figures[(n-1)/2] + figures[n/2]) / 2)
}

// ownServer starts this program again as a server with some flags. The context ends when it
// does; stop kills it.
func ownServer(ctx context.Context, flags ...string) (context.Context, *site, func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("find this program to start a server: %w", err)
	}
	var said tail
	cmd := exec.Command(self, append([]string{"serve", "--json"}, flags...)...)
	cmd.Env = withoutSettings(os.Environ())
	cmd.Stderr = &said
	endWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("start server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, fmt.Errorf("start server: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is of no interest after its last words
		cancel(fmt.Errorf("the server ended: %s", said.reason("it said nothing")))
	}()
	stop := func() error {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end server: %w", err)
		}
		<-ended
		return nil
	}
	where, err := readAnnouncement(out)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("start server: %w: %s", errors.Join(err, stop()), said.reason("it said nothing"))
	}
	s := &site{url: where.URL, server: loadtest.ProcessOf(where.PID)}
	s.allocations = s.readAllocations
	return ctx, s, stop, nil
}

// readAllocations asks the server how many allocations it has made.
func (s *site) readAllocations(ctx context.Context) (count float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read allocations: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if figure, ok := strings.CutPrefix(lines.Text(), "go_memstats_mallocs_total "); ok {
			return strconv.ParseFloat(figure, 64)
		}
	}
	return 0, errors.New("read allocations: the server does not say")
}

// withoutSettings leaves out what would make the server another one than the
// report speaks of. What only the tests of this program set stays.
func withoutSettings(environment []string) []string {
	return slices.DeleteFunc(environment, func(setting string) bool {
		return strings.HasPrefix(setting, "CODEQ_") && !strings.HasPrefix(setting, "CODEQ_TEST_")
	})
}

// readAnnouncement reads the first line of a server, and lets it say more.
func readAnnouncement(out io.ReadCloser) (where announced, err error) {
	timer := time.AfterFunc(announceFor, func() { _ = out.Close() }) // makes the read fail, which reports it
	defer timer.Stop()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return where, fmt.Errorf("it did not say where it listens: %w", err)
	}
	if err := json.Unmarshal(line, &where); err != nil {
		return where, fmt.Errorf("read where it listens: %w", err)
	}
	return where, nil
}
