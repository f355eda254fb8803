package watch

import (
	"fmt"
	"testing"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/internal/needs"
	"codeq/wire"
)

// fakeLog is a Log in memory: a ring of size events for each shard.
type fakeLog struct {
	size   int
	shards [][]events.Record
	last   []uint64
	points []wire.WatchPoint
	// sessions are those of each tenant, by id.
	sessions map[string][]wire.SessionFigures
	server   wire.ServerFigures
	dead     needs.DeadLetters
	beside   needs.Beside
	// slow are the deliveries of a queue that run for long, slowLooks how often one was asked for.
	slow      map[string]needs.Slow
	slowLooks int
}

func newFakeLog(shards, size int) *fakeLog {
	return &fakeLog{sessions: map[string][]wire.SessionFigures{}, size: size, shards: make([][]events.Record, shards), last: make([]uint64, shards)}
}

// add adds the next event of a shard.
func (l *fakeLog) add(shard int, r events.Record) {
	l.last[shard]++
	r.Number = l.last[shard]
	l.shards[shard] = append(l.shards[shard], r)
	if len(l.shards[shard]) > l.size {
		l.shards[shard] = l.shards[shard][1:]
	}
}

func (l *fakeLog) Positions() []uint64 { return append([]uint64(nil), l.last...) }

func (l *fakeLog) Oldest() []uint64 {
	oldest := make([]uint64, len(l.last))
	for shard, n := range l.last {
		oldest[shard] = n + 1 - uint64(len(l.shards[shard]))
	}
	return oldest
}

func (l *fakeLog) Read(shard int, after uint64, into []events.Record) (n int, missed uint64) {
	oldest := l.Oldest()[shard]
	if after+1 < oldest {
		missed = oldest - 1 - after
	}
	return copy(into, l.shards[shard][min(after+missed+1-oldest, uint64(len(l.shards[shard]))):]), missed
}

func (l *fakeLog) Points(uint32, int64) (int64, []wire.WatchPoint) { return 1000, l.points }

func (l *fakeLog) facts() Facts {
	return Facts{
		Events: l, CreationID: "c0ffee", Version: "1.0.0", Points: l.Points,
		TotalOf:  func(string) uint32 { return wire.TotalSlot },
		Beside:   func(uint32, int64) needs.Beside { return l.beside },
		Times:    func(slot uint32, wait, _ *[events.Buckets]uint64) { wait[slot%events.Buckets]++ },
		Sessions: func(tenant string) []wire.SessionFigures { return l.sessions[tenant] },
		Server:   func(int64) wire.ServerFigures { return l.server },
		Dead:     func(wire.SlotName) needs.DeadLetters { return l.dead },
		Target:   func(wire.SlotName) string { return "" },
		Slow:     func(q wire.SlotName, _ int64) needs.Slow { l.slowLooks++; return l.slow[q.Command] },
		ShardOf:  func(id wire.TaskID) int { return int(id[15]) % len(l.last) },
	}
}

func principal(tenant string, scopes ...string) *auth.Principal {
	return &auth.Principal{Tenant: tenant, Subject: "s", Scopes: auth.ExpandScopes(scopes)}
}

func queueName(slot int) wire.SlotName {
	return wire.SlotName{Slot: uint32(slot), Tenant: fmt.Sprintf("t%d", slot%2), Command: fmt.Sprintf("a%d.b%d", slot%3, slot)}
}

// frames takes one message apart; none for nil.
func frames(t *testing.T, message []byte) []wire.ServerFrame {
	t.Helper()
	if message == nil {
		return nil
	}
	if len(message) > wire.MaxServerMessageBytes {
		t.Fatalf("a message of %d bytes", len(message))
	}
	list, err := wire.ParseWatchMessage(message)
	if err != nil {
		t.Fatalf("%v in %s", err, message)
	}
	return list
}

// BenchmarkTickToAHundred: a tick of 500 queues that all changed goes to 100 subscribers.
func BenchmarkTickToAHundred(b *testing.B) {
	board, nowMs := NewBoard(newFakeLog(1, 1).facts()), int64(1)
	var subs []*Subscriber
	for range 100 {
		sub, refusal := NewSubscriber(board, principal("t1", auth.ScopeAdminAll), nowMs)
		if refusal != nil {
			b.Fatal(refusal)
		}
		sub.Take(nowMs, &wire.WatchSubscribe{ID: "q", Kind: wire.WatchQueues, EveryMs: wire.MinWatchEveryMs}, nil)
		subs = append(subs, sub)
	}
	var figures wire.Figures
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		nowMs += wire.MinWatchEveryMs
		for i := range figures {
			figures[i] += 1_000_003
		}
		for slot := range 500 {
			board.Set(queueName(slot), &figures, 0)
		}
		for _, sub := range subs {
			bytes += len(sub.Next(nowMs))
		}
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/tick")
}
