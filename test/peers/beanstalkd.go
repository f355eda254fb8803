package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// beanstalkd speaks a protocol of lines, which is short enough to have no client library
// here.
func beanstalkd() *queue {
	q := &queue{name: "beanstalkd"}
	q.find = func(*settings) error {
		q.version = versionOf("beanstalkd", "-v")
		return need("beanstalkd", "it comes with Debian's package beanstalkd")
	}
	q.ways = []way{
		{name: "-f 0", synced: "yes", start: startBeanstalkd, dial: dialBeanstalkd, batch: 1, inFlight: 1},
		{name: "-f 0, 64 puts in one write", pipelined: true, synced: "yes", start: startBeanstalkd, dial: dialBeanstalkd, batch: 64, inFlight: 1},
	}
	return q
}

func startBeanstalkd(dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return launch(port, nil, "beanstalkd", "-l", "127.0.0.1", "-p", port, "-b", dir, "-f", "0")
}

// beanstalkdLink makes a connection for each producer and each worker.
type beanstalkdLink struct {
	addr string
	mu   sync.Mutex // over all
	all  []net.Conn
}

func dialBeanstalkd(addr string) (link, error) {
	l := &beanstalkdLink{addr: addr}
	_, err := l.connect()
	return l, err
}

func (l *beanstalkdLink) connect() (*lines, error) {
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
	return &lines{bufio.NewReader(c), bufio.NewWriter(c)}, nil
}

func (l *beanstalkdLink) close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.all {
		if e := c.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// lines is one connection.
type lines struct {
	in  *bufio.Reader
	out *bufio.Writer
}

// expect reads an answer that begins with that word.
func (c *lines) expect(word string) (rest string, err error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r\n"), word)
	if !ok {
		return "", fmt.Errorf("the server said %q, not %s", line, word)
	}
	return rest, nil
}

func (l *beanstalkdLink) producer() (producer, error) { return l.connect() }

func (c *lines) post(payloads [][]byte) (func() error, error) {
	for _, p := range payloads {
		fmt.Fprintf(c.out, "put 0 0 60 %d\r\n%s\r\n", len(p), p)
	}
	err := c.out.Flush()
	return func() error {
		for range payloads {
			if _, err := c.expect("INSERTED"); err != nil {
				return err
			}
		}
		return nil
	}, err
}

func (l *beanstalkdLink) work(ctx context.Context, to *ledger) error {
	defer context.AfterFunc(ctx, func() { _ = l.close() })() // ends reads, at the end of the run
	return inParallel(workers, func() error {
		c, err := l.connect()
		if err != nil {
			return err
		}
		return c.work(to)
	})
}

// work reserves one task, and then deletes each together with reserving the next.
func (c *lines) work(to *ledger) error {
	if _, err := c.out.WriteString("reserve\r\n"); err != nil {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	for {
		said, err := c.expect("RESERVED ")
		if err != nil {
			return err
		}
		var id, length int
		if _, err := fmt.Sscan(said, &id, &length); err != nil {
			return err
		}
		payload := make([]byte, length+2)
		if _, err := io.ReadFull(c.in, payload); err != nil {
			return err
		}
		if err := to.deliver(payload[:length]); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "delete %d\r\nreserve\r\n", id)
		if err := c.out.Flush(); err != nil {
			return err
		}
		if _, err := c.expect("DELETED"); err != nil {
			return err
		}
		to.complete(1)
	}
}
