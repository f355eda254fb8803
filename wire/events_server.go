package wire

// ServerFigures are the figures of a server. Those with Per are of the last second.
type ServerFigures struct {
	Version    string
	Durability string
	// StartedAtMs is when the server started, Unix milliseconds.
	StartedAtMs int64
	// MemoryBytes is what the server plans with; 0 if nobody set it.
	MemoryBytes int64
	// Sessions and Subscribers count the open sessions and the clients that watch, of all
	// tenants.
	Sessions, Subscribers int
	// DiskGuard is what the free space allows: ok, no-enqueue, no-grant or only-delete.
	// DiskFreeBytes and DiskReserveBytes are 0 if the file system does not tell.
	DiskGuard                       string
	DiskFreeBytes, DiskReserveBytes int64
	// CommitsPer are batches of shards, SyncsPer what made them durable, SyncMicros the mean
	// length of a sync in microseconds; 0 without one.
	CommitsPer, SyncsPer, SyncMicros int64
	Shards                           []ShardFigures
}

// ShardFigures are the figures of a shard.
type ShardFigures struct {
	// Messages wait for the shard, NewMessages are those of them that are new work, Bytes is
	// what they keep in memory.
	Messages, NewMessages, Bytes int
	// BacklogMs is for how long every round has left new work waiting.
	BacklogMs int64
	// Drained is how many messages the shard took at once last, WaitMicros how long the oldest
	// of them had waited, in microseconds.
	Drained    int
	WaitMicros int64
	// Accepted and Refused count messages since the start.
	Accepted, Refused int64
}

func (f *ServerFigures) members(c *coder) {
	c.text(`,"version":`, &f.Version, &anyTextRule)
	c.text(`,"durability":`, &f.Durability, &anyTextRule)
	c.time(`,"startedAt":`, &f.StartedAtMs, &anyTimeRule)
	optInteger(c, `,"memoryBytes":`, &f.MemoryBytes, &anyIntegerRule)
	integer(c, `,"sessions":`, &f.Sessions, true, &anyIntegerRule)
	integer(c, `,"subscribers":`, &f.Subscribers, true, &anyIntegerRule)
	c.text(`,"diskGuard":`, &f.DiskGuard, &anyTextRule)
	optInteger(c, `,"diskFreeBytes":`, &f.DiskFreeBytes, &anyIntegerRule)
	optInteger(c, `,"diskReserveBytes":`, &f.DiskReserveBytes, &anyIntegerRule)
	integer(c, `,"commits":`, &f.CommitsPer, true, &anyIntegerRule)
	integer(c, `,"syncs":`, &f.SyncsPer, true, &anyIntegerRule)
	integer(c, `,"syncMicros":`, &f.SyncMicros, true, &anyIntegerRule)
	if c.in != nil {
		f.Shards, _ = readList(c, `,"shards":`, &anyListRule, shardShape, (*ShardFigures).members)
		return
	}
	for i := range f.Shards {
		at := c.element(`,"shards":`, i)
		f.Shards[i].members(c)
		c.close(at)
	}
	c.endList(len(f.Shards))
}

func (f *ShardFigures) members(c *coder) {
	integer(c, `,"messages":`, &f.Messages, true, &anyIntegerRule)
	integer(c, `,"newMessages":`, &f.NewMessages, true, &anyIntegerRule)
	integer(c, `,"bytes":`, &f.Bytes, true, &anyIntegerRule)
	integer(c, `,"backlogMs":`, &f.BacklogMs, true, &anyIntegerRule)
	integer(c, `,"drained":`, &f.Drained, true, &anyIntegerRule)
	integer(c, `,"waitMicros":`, &f.WaitMicros, true, &anyIntegerRule)
	integer(c, `,"accepted":`, &f.Accepted, true, &anyIntegerRule)
	integer(c, `,"refused":`, &f.Refused, true, &anyIntegerRule)
}

// How bad a need is, and what it is about.
const (
	// NeedCritical: work is lost or stands still. NeedWarning: it will, or waits for a person.
	NeedCritical = "critical"
	NeedWarning  = "warning"
	// NeedNotice is to be known.
	NeedNotice = "notice"

	// NeedNoWorker: tasks are ready and no worker takes them.
	NeedNoWorker = "no_worker"
	// NeedGrowing: tasks come faster than workers take them.
	NeedGrowing = "growing"
	// NeedSlow: deliveries run for far longer than others of the queue took.
	NeedSlow = "slow"
	// NeedDead: the queue has dead letters.
	NeedDead = "dead"
	// NeedPaused: the queue is paused, and tasks wait.
	NeedPaused = "paused"
	// NeedSetAside: tasks were set aside because they could not be read, or because three
	// deliveries in a row did not arrive.
	NeedSetAside = "set_aside"
	// NeedDisk: the disk guard refuses work.
	NeedDisk = "disk"
)

// Need is something that a person should look at.
type Need struct {
	Severity string
	Reason   string
	// Tenant is that of the queue if it is not that of the client. Command is "" for a need of
	// the server.
	Tenant, Command string
	// State is the list of tasks that the need counts, as a subscription of kind page names it;
	// "" without one.
	State string
	Count int64
	// SinceMs is since when, Unix milliseconds; 0 if nobody knows.
	SinceMs int64
	// Sentence says it all.
	Sentence string
}

func (n *Need) members(c *coder) {
	c.text(`,"severity":`, &n.Severity, &needTextRule)
	c.text(`,"reason":`, &n.Reason, &needTextRule)
	c.optText(`,"tenant":`, &n.Tenant, &anyTextRule)
	c.optText(`,"command":`, &n.Command, &anyTextRule)
	c.optText(`,"state":`, &n.State, &anyTextRule)
	optInteger(c, `,"count":`, &n.Count, &anyIntegerRule)
	c.optTime(`,"since":`, &n.SinceMs, &anyTimeRule)
	c.text(`,"sentence":`, &n.Sentence, &needTextRule)
}

var (
	serverShape = shapeOf(new([]string), new(ServerFigures).members)
	shardShape  = shapeOf(new([]string), new(ShardFigures).members)
	needShape   = shapeOf(new([]string), new(Need).members)
)
