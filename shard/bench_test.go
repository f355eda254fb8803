package shard

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// BenchmarkTask measures what one task costs its shard from the enqueue to the result,
// over a store in memory: rounds of 32 new tasks, each granted at once, and of their 32
// results. Nothing waits, so ns/op is processor time and allocs/op are those of core and
// store; BenchmarkCycle of package shardactor has the goroutines and the disk as well.
func BenchmarkTask(b *testing.B) { benchmarkTask(b, "", 0, "") }

// BenchmarkTaskBeside is BenchmarkTask beside 100,000 tasks in progress and as many delayed
// ones. BenchmarkKeyedTask is that for tasks each with a concurrency key of its own, beside
// 100,000 keys with a limit of one, each of which has one task in progress and one that waits.
func BenchmarkTaskBeside(b *testing.B) { benchmarkTask(b, "", 100_000, "") }
func BenchmarkKeyedTask(b *testing.B)  { benchmarkTask(b, "", 100_000, "key") }

// BenchmarkLabelledTask is BenchmarkTask for tasks with eight labels, each of which is a key.
func BenchmarkLabelledTask(b *testing.B) {
	benchmarkTask(b, "customer=acme\ndivision=north\nenv=prod\nkind=invoice\nmonth=11\nregion=eu-west-1\nrun=2026-11\nteam=billing", 0, "")
}

// taskBench is a shard over a store in memory, and what asks it.
type taskBench struct {
	b        *testing.B
	core     *Shard
	span     *store.Span
	nowMs    int64
	asker    Asker
	consumer *Consumer
	labels   wire.Labels
	key      string
	payload  []byte
	// made counts tasks.
	made uint64
}

func newTaskBench(b *testing.B, labels wire.Labels, key string, window int) *taskBench {
	s, err := store.Open(store.Options{FS: vfs.NewMem(), Dir: "data", Shards: 1, Log: zerolog.Nop(), Random: zeros{}})
	if err != nil {
		b.Fatal(err)
	}
	span := s.Span(0)
	recovered, err := span.Load()
	if err != nil {
		b.Fatal(err)
	}
	x := &taskBench{
		b: b, core: New(Config{Shards: 1}, span, recovered, 1), span: span, nowMs: 1, asker: Asker{Sink: &scriptSink{}},
		labels: labels, key: key, payload: make([]byte, 110),
	}
	x.consumer = x.newConsumer(window)
	return x
}

func (x *taskBench) newConsumer(window int) *Consumer {
	c := newTestConsumer(window)
	c.Sink, c.Tenant = x.asker.Sink, "default"
	return c
}

func (x *taskBench) round(messages ...Message) []Addressed {
	x.nowMs++
	out := x.core.Round(x.nowMs, messages)
	if _, err := x.span.Apply(); err != nil {
		x.b.Fatal(err)
	}
	x.core.ReuseEvents(out.Events)
	return out.Effects
}

// enqueue is a new task, with a key it is one for the n-th.
func (x *taskBench) enqueue(name string, n, delaySeconds int) Message {
	key := ""
	if x.made++; x.key != "" {
		key, delaySeconds = fmt.Sprint(name, n), 0
	}
	m := &Enqueue{Asker: x.asker, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
		Command: "bench", Payload: x.payload, MaxAttempts: 5, Labels: x.labels, ConcurrencyKey: key, DelaySeconds: int64(delaySeconds),
	}}
	binary.BigEndian.PutUint64(m.ID[:], x.made)
	return m
}

// taken confirms a delivery.
func (x *taskBench) taken(c *Consumer) {
	c.Credit.(interface {
		Taken(payloadBytes, boundBytes int)
	}).Taken(len(x.payload), MaxUntakenBytes)
}

// fill makes tasks of which each second one is in progress, and the other delayed or limited.
func (x *taskBench) fill(beside int) {
	full := x.newConsumer(beside)
	full.ID = wire.SessionID{9}
	set := wire.QueueSettings{PerKey: wire.PerKey{InProgress: 1}}
	x.round(
		&Configure{Asker: x.asker, Queue: record.QueueKey{Command: "bench", Tenant: "default"}, Change: SettingsChange{Settings: &set}},
		&Subscribe{Consumer: full, Commands: []string{"bench"}, LeaseForMs: 43_200_000},
	)
	for n := range 2 * beside {
		x.round(x.enqueue("full", n/2, n%2*3600))
		x.taken(full)
	}
	x.round(&Subscribe{Consumer: full})
	x.made = 1 << 40
}

func benchmarkTask(b *testing.B, labels wire.Labels, beside int, key string) {
	const batch = 32
	x := newTaskBench(b, labels, key, batch)
	if beside > 0 {
		x.fill(beside)
	}
	x.round(&Subscribe{Consumer: x.consumer, Commands: []string{"bench"}, LeaseForMs: 60_000})
	first, rounds := x.made, make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		messages := make([]Message, 0, batch)
		for range batch {
			messages = append(messages, x.enqueue("free", int(x.made), 0))
		}
		began := time.Now()
		effects := x.round(messages...)
		rounds = append(rounds, time.Since(began))
		messages = messages[:0]
		for _, a := range effects {
			if e, ok := a.Effect.(*Granted); ok {
				x.taken(x.consumer)
				messages = append(messages, &Result{
					Holder:        Holder{Asker: x.asker, Owner: Owner{Tenant: "default"}, TaskRef: wire.TaskRef{TaskID: e.Task.ID, Token: e.Token}},
					ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte("{}")},
				})
			}
		}
		if len(messages) != batch {
			b.Fatalf("%d of %d tasks were granted", len(messages), batch)
		}
		x.round(messages...)
		x.consumer.Credit.Return(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(x.made-first), "ns/task")
	slices.Sort(rounds)
	b.ReportMetric(float64(rounds[len(rounds)*99/100].Microseconds()), "p99-us/round")
}

// zeros is a source of randomness without any.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
