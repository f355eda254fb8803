package shardactor

import (
	"crypto/rand"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// BenchmarkCycle runs whole cycles through a real engine on the disk of the
// temporary directory, fsync on: enqueue, grant, result. Producers wait for
// each answer; the worker answers at once. 32 producers with a window of 128 are
// the load of "codeq bench", and 2048 with 4096 that of "codeq bench --pipeline 64
// --window 4096", both without sockets: cycles/s compares with cycles/s there, and
// cpu-µs/cycle with the processor time of server and generator together.
func BenchmarkCycle(b *testing.B) {
	for _, c := range []struct{ producers, window int }{{1, 128}, {32, 128}, {2048, 4096}} {
		b.Run(fmt.Sprintf("producers=%d/window=%d", c.producers, c.window), func(b *testing.B) {
			benchmarkCycle(b, c.producers, c.window)
		})
	}
}

func benchmarkCycle(b *testing.B, producers, window int) {
	e, closeEngine := startBenchEngine(b)
	defer closeEngine()
	worker := &benchWorker{engine: e, left: make(chan struct{}, 1), want: b.N}
	consumer := e.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: "default", Subject: "anonymous", Sink: worker})
	worker.consumer = consumer
	consumer.SetWindow(window)
	for shardNo := range e.Shards() {
		e.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: consumer.Consumer, Commands: []string{"bench"}, LeaseForMs: 60_000}}, 0, mailbox.ClassKeep)
	}
	b.ResetTimer()
	before := cpuMicros(b)
	var wg sync.WaitGroup
	work := make(chan struct{}, b.N)
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	for range producers {
		wg.Go(func() {
			p := &benchProducer{answered: make(chan struct{}, 1)}
			for range work {
				p.enqueue(b, e)
			}
		})
	}
	wg.Wait()
	<-worker.left
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric((cpuMicros(b)-before)/float64(b.N), "cpu-µs/cycle")
}

// cpuMicros is the processor time that this process has used.
func cpuMicros(b *testing.B) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1000
}

func startBenchEngine(b *testing.B) (*Engine, func()) {
	gates := new(Gates)
	s, err := store.Open(store.Options{
		FS: vfs.Default, Dir: b.TempDir(), Shards: 4, Log: zerolog.Nop(), Random: rand.Reader,
		Synced: gates.Synced,
	})
	if err != nil {
		b.Fatal(err)
	}
	e, err := NewEngine(EngineOptions{
		Store: s, Gates: gates, Random: rand.Reader, Log: zerolog.Nop(),
		StartClock: func(int64) func() int64 { return func() int64 { return time.Now().UnixMilli() } },
		Fatal:      func(err error) { b.Error(err) },
	})
	if err != nil {
		b.Fatal(err)
	}
	s.StartSyncer()
	e.Start()
	return e, func() {
		if err := e.Stop(); err != nil {
			b.Error(err)
		}
		s.StopSyncer()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
}

type benchProducer struct{ answered chan struct{} }

func (p *benchProducer) Deliver([]shard.Effect) { p.answered <- struct{}{} }

var benchPayload = []byte(`{"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`)

func (p *benchProducer) enqueue(b *testing.B, e *Engine) {
	id, shardNo := e.Route("default", "bench", "")
	m := &shard.Enqueue{Asker: shard.Asker{Sink: p}, ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
		Command: "bench", Payload: benchPayload, MaxAttempts: 5,
	}}
	for {
		v := e.Post(shardNo, []shard.Message{m}, len(benchPayload), mailbox.ClassNew)
		if v == mailbox.Accepted {
			break
		}
		if v != mailbox.Full {
			b.Errorf("post: %v", v)
			return
		}
		time.Sleep(time.Millisecond) // a busy machine refuses some for now, and real time must pass
	}
	<-p.answered
}

// benchWorker completes each task at once and gives its credit back.
type benchWorker struct {
	engine   *Engine
	consumer *Consumer
	left     chan struct{}
	want     int
}

func (w *benchWorker) Deliver(effects []shard.Effect) {
	results := make(map[int][]shard.Message)
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			w.consumer.Taken(len(e.Task.Payload), shard.MaxUntakenBytes)
			shardNo := w.engine.ShardOf(e.Task.ID)
			results[shardNo] = append(results[shardNo], &shard.Result{
				Holder: shard.Holder{
					Asker: shard.Asker{Sink: w}, Owner: shard.Owner{Tenant: "default", Subject: "anonymous"},
					TaskRef: wire.TaskRef{TaskID: e.Task.ID, Token: e.Token},
				},
				ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
			})
		case *shard.Completed:
			w.consumer.Return(1)
			if w.want--; w.want == 0 {
				w.left <- struct{}{}
			}
		}
	}
	for shardNo, batch := range results {
		w.engine.Post(shardNo, batch, 200*len(batch), mailbox.ClassKeep)
	}
}
