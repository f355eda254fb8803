package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// handBench is a bench whose shards are run by hand, in the time of a bubble, so
// that one of them can be too busy while the others work.
type handBench struct {
	*bench
	// busy is the shard that does not run, -1 for none.
	busy atomic.Int64
	done chan struct{}
}

// busyTest runs a test over a bench of which any shard can be made busy.
func busyTest(t *testing.T, test func(t *testing.T, b *handBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &handBench{
			bench: newBench(t, setup{idle: true, mailbox: mailbox.Limits{Messages: 400, Bytes: 1 << 20}}),
			done:  make(chan struct{}),
		}
		b.busy.Store(-1)
		go b.run()
		b.spread("c")
		defer func() {
			b.done <- struct{}{}
			synctest.Wait()
		}()
		test(t, b)
	})
}

// run works for all shards but the busy one, each millisecond, and makes durable
// what they did.
func (b *handBench) run() {
	for {
		select {
		case <-b.done:
			return
		case <-time.After(time.Millisecond):
		}
		for shard := range b.engine.Shards() {
			if int64(shard) != b.busy.Load() {
				b.engine.Run(shard)
			}
		}
		if err := b.store.Barrier(); err != nil {
			b.t.Error(err)
		}
	}
}

// stop makes one shard busy, with a mailbox that takes nothing more, after the
// one before has worked off what waits for it; -1 stands for none.
func (b *handBench) stop(shardNo int) {
	b.busy.Store(-1)
	<-time.After(10 * time.Millisecond)
	b.busy.Store(int64(shardNo))
	// A pass of run that began before may still run this shard and empty its
	// mailbox. What is posted into it afterwards would never be answered.
	synctest.Wait()
	full := func() bool {
		return b.engine.Post(shardNo, []shard.Message{&shard.SpaceChanged{}}, 1, mailbox.ClassKeep) != mailbox.Accepted
	}
	for shardNo >= 0 && !full() {
	}
}

// fill posts tasks until each shard has that many at least, and returns those of
// each.
func (b *handBench) fill(perShard int) (of [][]wire.TaskID) {
	b.t.Helper()
	of = make([][]wire.TaskID, b.engine.Shards())
	for short := len(of); short > 0; {
		id := b.post(`{"command":"c","payload":1,"maxAttempts":1}`).ID
		shard := b.engine.ShardOf(id)
		of[shard] = append(of[shard], id)
		if len(of[shard]) == perShard {
			short--
		}
	}
	return of
}

// A claim asks every shard, whichever of them is too busy to answer.
func TestAClaimPassesOverABusyShard(t *testing.T) {
	busyTest(t, func(t *testing.T, b *handBench) {
		for busy := range b.engine.Shards() {
			of := b.fill(2)
			b.stop(busy)
			if c := b.claim(`{"commands":["c"]}`); b.engine.ShardOf(c.ID) == busy {
				t.Errorf("shard %d is busy and handed out %v", busy, c.ID)
			}
			beside := -1
			for shard, ids := range of {
				if shard != busy {
					beside += len(ids)
				}
			}
			if n := len(b.do("POST", claimBatchPath, `{"count":100}`).claimedAll(t)); n != beside {
				t.Errorf("beside shard %d, which is busy, came %d tasks of %d", busy, n, beside)
			}
			b.stop(-1)
			if n := len(b.do("POST", claimBatchPath, `{"count":100}`).claimedAll(t)); n != len(of[busy]) {
				t.Errorf("shard %d had %d tasks, of which %d came", busy, len(of[busy]), n)
			}
		}
		b.stop(3)
		// Nobody knows whether the busy shard has a task.
		for _, body := range []string{"", `{"waitSeconds":30}`} {
			b.do("POST", claimPath, body).mustRefuse(t, wire.CodeOverloaded)
		}
	})
}

// A client that follows the answers of a replay or a purge comes past all dead letters,
// those too that a busy shard refused on the way.
func TestBulkWorkLeavesNothingBehindThatABusyShardRefused(t *testing.T) {
	work := []struct {
		name, done string
		ask        func(b *handBench, cursor string) got
	}{
		{"replay", "replayed", func(b *handBench, cursor string) got {
			return b.do("POST", deadPath+"/replay", fmt.Sprintf(`{"limit":8%s}`, prefixed(`,"cursor":"`, cursor, `"`)))
		}},
		{"purge", "purged", func(b *handBench, cursor string) got {
			return b.do("DELETE", deadPath+"?limit=8"+prefixed("&cursor=", cursor, ""), "")
		}},
	}
	for _, w := range work {
		t.Run(w.name, func(t *testing.T) {
			busyTest(t, func(t *testing.T, b *handBench) {
				total := 0
				for _, ids := range b.fill(5) {
					total += len(ids)
				}
				for _, c := range b.do("POST", claimBatchPath, `{"count":100}`).claimedAll(t) {
					if g := b.do("POST", c.path("nack"), `{}`); !strings.Contains(g.body, `"dlq"`) {
						t.Fatalf("nack: %d %s", g.status, g.body)
					}
				}
				b.stop(1)
				done, cursor := 0, ""
				for asked := 0; done < total; asked++ {
					if asked == 1 {
						b.stop(-1)
					}
					n := 0
					g := w.ask(b, cursor)
					if _, err := fmt.Sscanf(g.body, `{"`+w.done+`":%d,`, &n); err != nil || g.status != http.StatusOK {
						t.Fatalf("answered %d %s: %v", g.status, g.body, err)
					}
					_, rest, more := strings.Cut(g.body, `"cursor":"`)
					cursor, _, _ = strings.Cut(rest, `"`)
					if asked == 1000 {
						t.Fatalf("after 1,000 requests %d of %d letters were %s; the last answer is %s", done, total, w.done, g.body)
					}
					if done += n; asked > 0 && !more {
						break
					}
				}
				if done != total {
					t.Errorf("%d of %d letters were %s", done, total, w.done)
				}
			})
		})
	}
}

// prefixed is a text between two others, nothing if it is empty.
func prefixed(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

// A claim that waited takes with the first task what other shards had granted to
// it by then: nobody else would get that before its lease has run out.
func TestAClaimThatWaitedTakesAllThatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		spread := make(chan struct{})
		go func() {
			b.spread("c")
			close(spread)
		}()
		for range 2 { // the home, the others
			synctest.Wait()
			if err := b.store.Barrier(); err != nil {
				t.Fatal(err)
			}
		}
		<-spread
		var news []int
		release := b.synced
		b.synced = func(shard int, _ uint64) { news = append(news, shard) }
		answers := make(chan got, 1)
		go func() { answers <- b.do("POST", claimBatchPath, `{"count":50,"waitSeconds":30}`) }()
		synctest.Wait()
		posted := make(chan got, 1)
		go func() { posted <- b.do("POST", batchPath, batchOf(manyItems(50)...)) }()
		synctest.Wait()
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		if len(news) < 2 {
			t.Fatalf("shards %v have something new, want some of them", news)
		}
		for _, shard := range news {
			select {
			case g := <-answers:
				t.Errorf("answered while some were on their way: %d %.80s", g.status, g.body)
				answers <- g
			default:
			}
			release(shard, 1<<40)
			synctest.Wait()
		}
		<-posted
		if n := len((<-answers).claimedAll(t)); n != 50 {
			t.Errorf("got %d of 50", n)
		}
	})
}
