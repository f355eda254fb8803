package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

func TestNothingIsToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted, listed := make(chan got, 1), make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		go func() { listed <- b.do("GET", "/v1/codeq/admin/queues", "") }()
		synctest.Wait()
		select {
		case g := <-posted:
			t.Errorf("answered without a sync: %d %s", g.status, g.body)
		case g := <-listed:
			t.Errorf("read without a sync: %d %s", g.status, g.body)
		default:
		}
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		if g := <-posted; g.status != http.StatusAccepted {
			t.Errorf("posted: %d %s", g.status, g.body)
		}
		if g := <-listed; !strings.Contains(g.body, `"ready":1`) {
			t.Errorf("listed: %d %s", g.status, g.body)
		}
	})
}

// The figures in the answer of a replay are read like any other.
func TestWhatAReplayLeavesIsNotToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted, replayed := make(chan got, 1), make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		go func() { replayed <- b.do("POST", "/v1/codeq/admin/queues/c/dlq/replay", "") }()
		synctest.Wait()
		select {
		case g := <-replayed:
			t.Errorf("told without a sync: %d %s", g.status, g.body)
			replayed <- g
		default:
		}
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		<-posted
		if g := <-replayed; g.body != `{"replayed":0,"remaining":0}` {
			t.Errorf("replayed: %d %s", g.status, g.body)
		}
	})
}

func TestStopOfTheEngineAnswersProducersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted := make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		b.stopEngine()
		if g := <-posted; g.status != http.StatusAccepted {
			t.Errorf("posted: %d %s", g.status, g.body)
		}
	})
}
