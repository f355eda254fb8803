package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

const (
	subject = "tasks"
	// fetched is how many tasks a consumer may have.
	fetched = 256
	// workers is how many tasks are worked on at a time where each has a goroutine.
	workers = 128
)

// jetStream is NATS JetStream with both of its ways to sync.
func jetStream() *queue {
	q := &queue{name: "NATS JetStream"}
	q.find = func(*settings) error {
		q.version = versionOf("nats-server", "--version")
		return need("nats-server", "build it in test/peers with: go build -o DIRECTORY-OF-PATH github.com/nats-io/nats-server/v2")
	}
	q.ways = append(jetStreamWays("sync always", "yes"), jetStreamWays("sync every 2 minutes, the default", "no")...)
	return q
}

func jetStreamWays(name, synced string) []way {
	start := func(dir string) (*server, error) { return startNATS(dir, synced == "yes") }
	as := func(kind string) func(string) (link, error) {
		return func(addr string) (link, error) { return dialNATS(addr, kind) }
	}
	return []way{
		{name: name + ", publish", synced: synced, start: start, dial: as("publish"), batch: 1, inFlight: 1},
		{name: name + ", async publish", pipelined: true, synced: synced, start: start, dial: as("async"), batch: 1, inFlight: 64},
		{name: name + ", atomic batches of 64", pipelined: true, synced: synced, start: start, dial: as("atomic"), batch: 64, inFlight: 1},
		{name: name + ", fast batches", pipelined: true, synced: synced, start: start, dial: as("fast"), batch: 1, inFlight: 1},
	}
}

func startNATS(dir string, always bool) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	sync := ""
	if always {
		sync = "sync_interval: always"
	}
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:%s\njetstream {\n store_dir: %q\n %s\n}\n", port, filepath.Join(dir, "data"), sync)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return launch(port, nil, "nats-server", "-c", config)
}

type natsLink struct {
	kind string
	addr string
	conn *nats.Conn
	js   jetstream.JetStream
}

func dialNATS(addr, kind string) (link, error) {
	l := &natsLink{kind: kind, addr: addr}
	if err := l.connect(); err != nil {
		return nil, err
	}
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	_, err := l.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "TASKS", Subjects: []string{subject}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		AllowAtomicPublish: true, AllowBatchPublish: true,
	})
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *natsLink) connect() (err error) {
	if l.conn, err = nats.Connect(l.addr); err != nil {
		return err
	}
	l.js, err = jetstream.New(l.conn, jetstream.WithPublishAsyncMaxPending(unfinished))
	return err
}

func (l *natsLink) close() error {
	l.conn.Close()
	return nil
}

func (l *natsLink) producer() (producer, error) {
	if l.kind == "fast" {
		p, err := jetstreamext.NewFastPublisher(l.js, jetstreamext.FastPublishFlowControl{Flow: 32, MaxOutstandingAcks: 2})
		return &fastProducer{p}, err
	}
	return l, nil
}

// post implements producer in the way that kind says.
func (l *natsLink) post(payloads [][]byte) (func() error, error) {
	ctx := context.Background()
	if l.kind == "atomic" {
		messages := make([]*nats.Msg, len(payloads))
		for i, p := range payloads {
			messages[i] = &nats.Msg{Subject: subject, Header: nats.Header{}, Data: p}
		}
		_, err := jetstreamext.PublishMsgBatch(ctx, l.js, messages, jetstreamext.BatchFlowControl{})
		return nothingToWaitFor, err
	}
	if l.kind == "publish" {
		_, err := l.js.Publish(ctx, subject, payloads[0])
		return nothingToWaitFor, err
	}
	future, err := l.js.PublishAsync(subject, payloads[0])
	return func() error {
		select {
		case <-future.Ok():
			return nil
		case err := <-future.Err():
			return err
		}
	}, err
}

// fastProducer stores each task as it comes. Its publisher waits while 64 have no answer,
// and says at the end that all are stored.
type fastProducer struct{ publisher jetstreamext.FastPublisher }

func (p *fastProducer) post(payloads [][]byte) (func() error, error) {
	_, err := p.publisher.Add(subject, payloads[0])
	return nothingToWaitFor, err
}

func (p *fastProducer) finish() error {
	_, err := p.publisher.Close(context.Background())
	return err
}

// work implements link: one pull consumer that is sent tasks ahead, as JetStream
// recommends, and a confirmed ack for each of them.
func (l *natsLink) work(ctx context.Context, to *ledger) error {
	w := natsLink{addr: l.addr}
	if err := w.connect(); err != nil {
		return err
	}
	defer w.conn.Close()
	consumer, err := w.js.CreateConsumer(ctx, "TASKS", jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: fetched, AckWait: time.Minute,
	})
	if err != nil {
		return err
	}
	tasks := make(chan jetstream.Msg, fetched)
	failures := make(chan error, workers)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for m := range tasks {
				err := to.deliver(m.Data())
				if err == nil {
					err = m.DoubleAck(context.WithoutCancel(ctx))
				}
				if err != nil {
					failures <- err
					return
				}
				to.complete(1)
			}
		})
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) { tasks <- m }, jetstream.PullMaxMessages(fetched))
	if err != nil {
		return err
	}
	select {
	case err = <-failures:
	case <-ctx.Done():
	}
	consuming.Stop()
	<-consuming.Closed()
	close(tasks)
	working.Wait()
	return err
}
