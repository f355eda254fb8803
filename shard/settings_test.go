package shard

import (
	"testing"

	"codeq/record"
	"codeq/wire"
)

// What is told to hold for a queue is what its shard acts on.
func TestU10EffectiveSettingsAreWhatAShardActsOn(t *testing.T) {
	key := record.QueueKey{Command: "c", Tenant: "acme"}
	task := &record.Task{Command: key.Command, Tenant: key.Tenant}
	for _, server := range []Retention{{}, {DoneForMs: 3600_000, DeadForMs: 7200_000}} {
		for _, set := range []wire.QueueSettings{
			{},
			{MaxAttempts: 7, LeaseSeconds: 30, RetentionSeconds: 60, DLQRetentionSeconds: 90},
			{Backoff: wire.Backoff{Policy: wire.BackoffLinear, MaxSeconds: 30}},
			{Spread: true, Backoff: wire.Backoff{BaseSeconds: 2}},
		} {
			w := newScriptWorld(t)
			w.load()
			s := w.core
			s.retention = server
			q := s.queueOf(key)
			q.settings.QueueSettings = set
			b := s.backoffOf(task)
			consumer := newTestConsumer(1)
			consumer.Tenant, consumer.Sink = key.Tenant, &scriptSink{}
			var granted *Granted
			for _, a := range s.Round(1, []Message{
				&Subscribe{Consumer: consumer, Commands: []string{key.Command}},
				&Enqueue{ID: wire.TaskID{1}, Tenant: key.Tenant, EnqueueRequest: wire.EnqueueRequest{Command: key.Command}},
			}).Effects {
				granted, _ = a.Effect.(*Granted)
			}
			want := wire.QueueSettings{
				Spread: set.Spread, MaxAttempts: granted.Task.MaxAttempts,
				LeaseSeconds:        int(granted.LeaseForMs / 1000),
				Backoff:             wire.Backoff{Policy: b.policy, BaseSeconds: b.baseMs / 1000, MaxSeconds: b.maxMs / 1000},
				RetentionSeconds:    s.retentionOf(q, wire.LocationNone) / 1000,
				DLQRetentionSeconds: s.retentionOf(q, wire.LocationDead) / 1000,
			}
			if got := server.Effective(set); got != want {
				t.Errorf("%+v on %+v:\n got %+v\nwant %+v", set, server, got, want)
			}
		}
	}
}
