package httpapi

import (
	"strings"
	"sync"
)

// maxClaimTurns bounds the kinds of claims that have turns; beyond it all turns are forgotten.
const maxClaimTurns = 1024

// claimTurns makes claims of one kind (one tenant and one list of commands) ask one shard
// after another first, while several shards have ready queues for them. Each shard is first
// as often in a row as it has ready queues, so queues of all shards have the same number of
// turns. After a claim that finds fewer than two such shards the next claim asks all at once.
type claimTurns struct {
	mu    sync.Mutex
	kinds map[string]*claimTurn
}

// claimTurn is the next shard, and how often in a row it was first.
type claimTurn struct{ shard, row int }

func kindOf(k *claim) string {
	return k.call.who.Tenant + "\x00" + strings.Join(k.req.Commands, "\x00")
}

// of is the shard that a claim asks first, -1 for all at once.
func (c *claimTurns) of(k *claim) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.kinds[kindOf(k)]; t != nil {
		return t.shard
	}
	return -1
}

// note moves the turn after a claim: began is the shard that it asked first, ready the number
// of ready queues in each shard. Two claims at the same time can miscount a row.
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
		if c.kinds == nil || len(c.kinds) >= maxClaimTurns {
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
