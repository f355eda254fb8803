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

func benchmarkTask(b *testing.B, labels wire.Labels, beside int, key string) {
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
	enqueue := func(name string, n, delaySeconds int) Message {
		if made++; key != "" {
			key, delaySeconds = fmt.Sprint(name, n), 0
		}
		m := &Enqueue{Asker: asker, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
			Command: "bench", Payload: payload, MaxAttempts: 5, Labels: labels, ConcurrencyKey: key, DelaySeconds: int64(delaySeconds),
		}}
		binary.BigEndian.PutUint64(m.ID[:], made)
		return m
	}
	if beside > 0 {
		full := newTestConsumer(beside)
		full.Sink, full.Tenant, full.ID = sink, "default", wire.SessionID{9}
		set := wire.QueueSettings{PerKey: wire.PerKey{InProgress: 1}}
		round([]Message{
			&SessionGone{Consumer: consumer}, &Configure{Asker: asker, Queue: record.QueueKey{Command: "bench", Tenant: "default"}, Change: SettingsChange{Settings: &set}},
			&Subscribe{Consumer: full, Commands: []string{"bench"}, LeaseForMs: 43_200_000},
		})
		for n := range 2 * beside {
			round([]Message{enqueue("full", n/2, n%2*3600)})
			full.Credit.(interface {
				Taken(payloadBytes, boundBytes int)
			}).Taken(len(payload), MaxUntakenBytes)
		}
		round([]Message{&Subscribe{Consumer: full}, &Subscribe{Consumer: consumer, Commands: []string{"bench"}, LeaseForMs: 60_000}})
		made = 1 << 40
	}
	first, rounds := made, make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		messages := make([]Message, 0, batch)
		for range batch {
			messages = append(messages, enqueue("free", int(made), 0))
		}
		began := time.Now()
		effects := round(messages)
		rounds = append(rounds, time.Since(began))
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(made-first), "ns/task")
	slices.Sort(rounds)
	b.ReportMetric(float64(rounds[len(rounds)*99/100].Microseconds()), "p99-us/round")
}

// zeros is a source of randomness without any.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
