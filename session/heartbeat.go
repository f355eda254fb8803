package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// taskRefBytes is the size of one delivery in a message to a shard, and in the list of lost ones
// in the answer.
const taskRefBytes = 128

// heartbeat extends the leases of the named deliveries, or of all in flight. The client gets its
// answer when every shard with such a delivery has answered.
func (c *Conversation) heartbeat(f *wire.Heartbeat) {
	r := c.begin(f.Ref, messageBytes+len(f.Tasks)*taskRefBytes)
	r.ok.IsHeartbeat = true
	if f.Tasks != nil && len(f.Tasks) == 0 {
		c.succeed(r, &r.ok)
		return
	}
	number := c.open(r)
	for shardNo, tasks := range c.perShard(f.Tasks) {
		if f.Tasks != nil && tasks == nil {
			continue
		}
		c.post(shardNo, mailbox.ClassKeep, &shard.Heartbeat{
			Asker: c.ask(r, number), Owner: c.owner(), Consumer: c.consumer, Tasks: tasks,
			ExtendForMs: int64(f.ExtendSeconds) * 1000,
		}, messageBytes+len(tasks)*taskRefBytes)
	}
	for _, ref := range f.Tasks {
		c.tasks.confirmNamed(ref)
	}
}

// extended adds the answer of one shard to those of the others: the earliest end of a lease, the
// earliest end of a run, and all lost deliveries.
func (c *Conversation) extended(e *shard.Extended) {
	r := c.asked(e.Ref)
	if e.LeaseUntilMs != 0 && (r.ok.LeaseUntilMs == 0 || e.LeaseUntilMs < r.ok.LeaseUntilMs) {
		r.ok.LeaseUntilMs = e.LeaseUntilMs
	}
	if e.RunUntilMs != 0 && (r.ok.RunUntilMs == 0 || e.RunUntilMs < r.ok.RunUntilMs) {
		r.ok.RunUntilMs = e.RunUntilMs
	}
	r.ok.Lost = append(r.ok.Lost, e.Lost...)
	c.shardAnswered(e.Ref, nil)
}

// perShard splits deliveries by the shard of their task, in their order. It is nil for a shard
// without one.
func (c *Conversation) perShard(tasks []wire.TaskRef) [][]wire.TaskRef {
	split := make([][]wire.TaskRef, c.facts.Router.Shards())
	for _, ref := range tasks {
		shardNo := c.facts.Router.ShardOf(ref.TaskID)
		split[shardNo] = append(split[shardNo], ref)
	}
	return split
}
