package httpapi

import (
	"strings"
	"sync"
)

// mostClaimTurns is how many kinds of claims have turns; with more, all begin anew.
const mostClaimTurns = 1024

// claimTurns lets claims of one kind (one tenant and list of commands) begin with
// one shard after another while several have something ready for them, each as
// often in a row as it has ready queues. So queues of all shards have as many
// turns. A claim that finds less than two such shards leaves no turn behind, and
// the next asks all at once.
type claimTurns struct {
	mu    sync.Mutex
	kinds map[string]*claimTurn
}

// claimTurn is the shard that is next, and how often in a row it was.
type claimTurn struct{ shard, row int }

func kindOf(k *claim) string {
	return k.call.who.Tenant + "\x00" + strings.Join(k.req.Commands, "\x00")
}

// of is the shard that a claim begins with, -1 for all.
func (c *claimTurns) of(k *claim) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.kinds[kindOf(k)]; t != nil {
		return t.shard
	}
	return -1
}

// note takes down what a claim found that began with a shard: how many queues are
// ready for it in each. Two claims at a time may miscount a row.
func (c *claimTurns) note(k *claim, began int, ready []int) {
	several := 0
	for _, n := range ready {
		several += min(n, 1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if several < 2 {
		delete(c.kinds, kindOf(k))
		return
	}
	t := c.kinds[kindOf(k)]
	if t == nil {
		if c.kinds == nil || len(c.kinds) >= mostClaimTurns {
			c.kinds = make(map[string]*claimTurn)
		}
		t = &claimTurn{}
		c.kinds[kindOf(k)] = t
	}
	if began == t.shard {
		t.row++
	}
	for ; t.row >= ready[t.shard]; t.row = 0 {
		t.shard = (t.shard + 1) % len(ready)
	}
}
