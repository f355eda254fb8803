package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// taskRefBytes is what one delivery takes in a message to a shard, and in the
// list of lost ones in the answer.
const taskRefBytes = 128

// heartbeat extends the leases it names, or all in hand. It is answered when
// every shard it concerns has.
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
			Asker: c.ask(r, number), Owner: c.owner(), Seat: c.seat, Tasks: tasks,
			ExtendForMs: int64(f.ExtendSeconds) * 1000,
		}, messageBytes+len(tasks)*taskRefBytes)
	}
	for _, ref := range f.Tasks {
		c.tasks.named(ref)
	}
}

// extended joins the answer of one shard to those of the others: the earliest
// ends of a lease and of a run, and everything that is lost.
func (c *Conversation) extended(e *shard.Extended) {
	r := c.asked(e.Ref)
	if e.LeaseUntilMs != 0 && (r.ok.LeaseUntilMs == 0 || e.LeaseUntilMs < r.ok.LeaseUntilMs) {
		r.ok.LeaseUntilMs = e.LeaseUntilMs
	}
	if e.RunUntilMs != 0 && (r.ok.RunUntilMs == 0 || e.RunUntilMs < r.ok.RunUntilMs) {
		r.ok.RunUntilMs = e.RunUntilMs
	}
	r.ok.Lost = append(r.ok.Lost, e.Lost...)
	c.settle(e.Ref, nil)
}

// perShard splits deliveries by the shard of their task, in their order. A
// shard without any has nil.
func (c *Conversation) perShard(tasks []wire.TaskRef) [][]wire.TaskRef {
	split := make([][]wire.TaskRef, c.facts.Router.Shards())
	for _, ref := range tasks {
		shard := c.facts.Router.ShardOf(ref.TaskID)
		split[shard] = append(split[shard], ref)
	}
	return split
}
