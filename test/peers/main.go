package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	codeq  string
	dir    string
	rounds int
	only   string
	// warmUp is not measured, measure is.
	warmUp, measure time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.codeq, "codeq", "bin/codeq", "the program of codeq")
	flag.StringVar(&s.dir, "dir", "", "where the data of the servers goes; a directory in memory makes every fsync free")
	flag.IntVar(&s.rounds, "rounds", 3, "how often each queue is measured; the medians are printed")
	flag.StringVar(&s.only, "only", "", "parts of the names of the queues that are measured beside codeq, separated by commas; all without it")
	flag.DurationVar(&s.warmUp, "warm-up", 2*time.Second, "time before the measured time")
	flag.DurationVar(&s.measure, "measure", 4*time.Second, "measured time of each figure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// compare measures every queue that is there in turn, and prints the table.
func compare(ctx context.Context, s *settings) error {
	queues := slices.DeleteFunc(all(), func(q *queue) bool { return q.name != codeqName && !s.wanted(q.name) })
	var missing []string
	queues = slices.DeleteFunc(queues, func(q *queue) bool {
		err := q.find(s)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", q.name, err))
		}
		return err != nil
	})
	var failures []error
	for round := range s.rounds {
		for _, q := range queues {
			for i := range q.ways {
				if ctx.Err() != nil {
					return errors.New("stopped")
				}
				f, err := s.once(ctx, q, &q.ways[i])
				if err != nil {
					failures = append(failures, fmt.Errorf("%s, %s: %w", q.name, q.ways[i].name, err))
					continue
				}
				fmt.Fprintf(os.Stderr, "round %d: %s, %s: %.0f cycles/s, %.0f µs of server CPU each\n",
					round+1, q.name, q.ways[i].name, f.perSecond, f.serverMicros)
				q.ways[i].figures = append(q.ways[i].figures, *f)
			}
		}
	}
	printTable(os.Stdout, queues)
	for _, m := range missing {
		fmt.Println("\nNot measured:", m)
	}
	return errors.Join(failures...)
}

// wanted says that -only names the queue.
func (s *settings) wanted(name string) bool {
	return s.only == "" || slices.ContainsFunc(strings.Split(s.only, ","), func(part string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(part))
	})
}

// once starts a server, measures one way to use it and ends it.
func (s *settings) once(ctx context.Context, q *queue, w *way) (f *figure, err error) {
	dir, err := os.MkdirTemp(s.dir, "peers-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if w.measure != nil {
		return w.measure(ctx, s, dir)
	}
	server, err := w.start(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	link, err := eventually(ctx, server, func() (link, error) { return w.dial(server.addr) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, link.close()) }()
	return newRun(s, w, link, server).carryOut(ctx)
}
