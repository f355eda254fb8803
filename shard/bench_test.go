package shard

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/store"
	"codeq/wire"
)

// BenchmarkTask measures what one task costs its shard from the enqueue to the result,
// over a store in memory: rounds of 32 new tasks, each granted at once, and of their 32
// results. Nothing waits, so ns/op is processor time and allocs/op are those of core and
// store; BenchmarkCycle of package shardactor has the goroutines and the disk as well.
func BenchmarkTask(b *testing.B) { benchmarkTask(b, "") }

// BenchmarkLabelledTask is BenchmarkTask for tasks with eight labels, each of which is a key.
func BenchmarkLabelledTask(b *testing.B) {
	benchmarkTask(b, "customer=acme\ndivision=north\nenv=prod\nkind=invoice\nmonth=11\nregion=eu-west-1\nrun=2026-11\nteam=billing")
}

func benchmarkTask(b *testing.B, labels wire.Labels) {
	const batch = 32
	s, err := store.Open(store.Options{FS: vfs.NewMem(), Dir: "data", Shards: 1, Log: zerolog.Nop(), Random: zeros{}})
	if err != nil {
		b.Fatal(err)
	}
	span := s.Span(0)
	recovered, err := span.Load()
	if err != nil {
		b.Fatal(err)
	}
	core, nowMs := New(Config{Shards: 1}, span, recovered, 1), int64(1)
	round := func(messages []Message) []Addressed {
		nowMs++
		out := core.Round(nowMs, messages)
		if _, err := span.Apply(); err != nil {
			b.Fatal(err)
		}
		core.ReuseEvents(out.Events)
		return out.Effects
	}
	sink, consumer := &scriptSink{}, newTestConsumer(batch)
	consumer.Sink, consumer.Tenant = sink, "default"
	asker, owner := Asker{Sink: sink}, Owner{Tenant: "default"}
	round([]Message{&Subscribe{Consumer: consumer, Commands: []string{"bench"}, LeaseForMs: 60_000}})
	payload, made := make([]byte, 110), uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		messages := make([]Message, 0, batch)
		for range batch {
			made++
			m := &Enqueue{Asker: asker, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{Command: "bench", Payload: payload, MaxAttempts: 5, Labels: labels}}
			binary.BigEndian.PutUint64(m.ID[:], made)
			messages = append(messages, m)
		}
		effects := round(messages)
		messages = messages[:0]
		for _, a := range effects {
			if e, ok := a.Effect.(*Granted); ok {
				consumer.Credit.(interface {
					Taken(payloadBytes, boundBytes int)
				}).Taken(len(payload), MaxUntakenBytes)
				messages = append(messages, &Result{
					Holder:        Holder{Asker: asker, Owner: owner, TaskRef: wire.TaskRef{TaskID: e.Task.ID, Token: e.Token}},
					ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte("{}")},
				})
			}
		}
		if len(messages) != batch {
			b.Fatalf("%d of %d tasks were granted", len(messages), batch)
		}
		round(messages)
		consumer.Credit.Return(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(made), "ns/task")
}

// zeros is a source of randomness without any.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
