package record

import (
	"cmp"
	"fmt"
	"strings"

	"codeq/wire"
)

// QueueKey names one queue of a shard: what is claimed together.
type QueueKey struct {
	Command string
	Tenant  string
}

// Compare orders queues by command, then by tenant.
func (q QueueKey) Compare(o QueueKey) int {
	return cmp.Or(strings.Compare(q.Command, o.Command), strings.Compare(q.Tenant, o.Tenant))
}

func (q *QueueKey) fields(f *form) {
	f.str(1, "command", &q.Command)
	f.str(2, "tenant", &q.Tenant)
}

// AppendNames adds the value of the name of a queue, which has a command at least.
func AppendNames(dst []byte, q QueueKey) []byte {
	f := form{out: dst}
	q.fields(&f)
	return f.out
}

// ParseNames reads what AppendNames wrote.
func ParseNames(data []byte) (q QueueKey, err error) {
	f := read(string(data))
	q.fields(&f)
	_, err = f.end()
	return q, err
}

// Settings are what a queue was set to. Every shard has a copy; the one of the
// queue's home, wire.ShardOfQueue, is the newest.
type Settings struct {
	// Version counts the changes; 0 means that nothing was ever set.
	Version int64
	// Paused keeps the tasks of the queue from workers.
	Paused bool
	// Deleting: the queue takes no task, and goes when it has none left.
	Deleting bool
	wire.QueueSettings

	// Newer has the fields that a newer program has added.
	Newer string
}

func (s *Settings) fields(f *form) {
	number(f, 1, "version", &s.Version)
	f.flag(2, "paused", &s.Paused)
	f.flag(3, "deleting", &s.Deleting)
	f.flag(4, "spread", &s.Spread)
	number(f, 5, "maxAttempts", &s.MaxAttempts)
	number(f, 6, "leaseSeconds", &s.LeaseSeconds)
	number(f, 7, "timeoutSeconds", &s.TimeoutSeconds)
	number(f, 8, "ttlSeconds", &s.TTLSeconds)
	f.str(9, "backoff", &s.Backoff.Policy)
	number(f, 10, "backoffBaseSeconds", &s.Backoff.BaseSeconds)
	number(f, 11, "backoffMaxSeconds", &s.Backoff.MaxSeconds)
	number(f, 12, "retentionSeconds", &s.RetentionSeconds)
	number(f, 13, "dlqRetentionSeconds", &s.DLQRetentionSeconds)
	number(f, 14, "maxInProgress", &s.MaxInProgress)
	number(f, 15, "startsPerSecond", &s.StartsPerSecond)
	number(f, 16, "perKeyInProgress", &s.PerKey.InProgress)
	number(f, 17, "perKeyStartsPerSecond", &s.PerKey.StartsPerSecond)
	f.str(18, "target", &s.Target.URL)
	number(f, 19, "targetWindow", &s.Target.Window)
}

// AppendSettings adds the value of the settings of a queue.
func AppendSettings(dst []byte, s *Settings) []byte {
	f := form{out: dst}
	s.fields(&f)
	return append(f.out, s.Newer...)
}

// ParseSettings reads what AppendSettings wrote. Settings have a version.
func ParseSettings(data []byte, s *Settings) (err error) {
	f := read(string(data))
	*s = Settings{}
	s.fields(&f)
	if s.Newer, err = f.end(); err == nil && s.Version < 1 {
		err = ErrDamaged
	}
	return err
}

// Priorities is the number of priorities a queue has.
const Priorities = wire.MaxPriority + 1

// Counters are the figures of one queue in one shard, written with every
// batch that changes them. The watermarks are lower bounds: no live key of that
// family is below them, so a restart seeks there and never scans tombstones.
type Counters struct {
	Ready          [Priorities]int64
	ReadyWatermark [Priorities]uint64
	// ReadySinceMs is since when the head of each priority is ready, which is
	// the value of its pending key: so the age of a queue is read with its
	// figures. It is 0 without a head, and while the shard does not know it:
	// until it reads what follows a window that ran empty, and before anything
	// happens in a database of a version that did not write it.
	ReadySinceMs [Priorities]int64
	Delayed      int64
	// DelayedWatermarkMs, DeadWatermarkMs and DoneWatermarkMs bound due and end times.
	DelayedWatermarkMs int64
	// Expiring are those of the ready and delayed tasks that expire, ExpiringWatermarkMs
	// bounds when.
	Expiring            int64
	ExpiringWatermarkMs int64
	InProgress          int64
	// LeaseWatermark bounds the first eight bytes of the ids in progress, which are
	// the order that their entries have; see RankOf.
	LeaseWatermark  uint64
	Dead            int64
	DeadWatermarkMs int64
	// DeadBy are the dead letters of each cause, and FailedWatermarkMs is the watermark of
	// those with the cause wire.DeadFailed, which may go before the others.
	DeadBy            [wire.DeadKinds]int64
	FailedWatermarkMs int64
	Done              int64
	DoneWatermarkMs   int64
	// Limited are the tasks that wait for their concurrency keys.
	Limited int64
	// WaitingBytes are the payloads of all tasks that wait. Entries of orders do not have
	// it, so whoever counts these reads the tasks.
	WaitingBytes int64
	// FileBytes are those of the files that tasks have, see Files.
	FileBytes int64

	// Newer has the fields that a newer program has added.
	Newer string
}

func (c *Counters) fields(f *form) {
	number(f, 1, "inProgress", &c.InProgress)
	list(f, 2, "ready", c.Ready[:])
	list(f, 3, "readyFloor", c.ReadyWatermark[:])
	list(f, 4, "readySinceMs", c.ReadySinceMs[:])
	number(f, 5, "delayed", &c.Delayed)
	number(f, 6, "delayedFloorMs", &c.DelayedWatermarkMs)
	number(f, 7, "expiring", &c.Expiring)
	number(f, 8, "expiringFloorMs", &c.ExpiringWatermarkMs)
	number(f, 9, "leaseFloor", &c.LeaseWatermark)
	number(f, 10, "dead", &c.Dead)
	number(f, 11, "deadFloorMs", &c.DeadWatermarkMs)
	list(f, 12, "deadBy", c.DeadBy[:])
	number(f, 13, "failedFloorMs", &c.FailedWatermarkMs)
	number(f, 14, "done", &c.Done)
	number(f, 15, "doneFloorMs", &c.DoneWatermarkMs)
	number(f, 16, "limited", &c.Limited)
	number(f, 17, "waitingBytes", &c.WaitingBytes)
	number(f, 18, "fileBytes", &c.FileBytes)
}

// AppendCounters adds the value of the counters of a queue.
func AppendCounters(dst []byte, c *Counters) []byte {
	f := form{out: dst}
	c.fields(&f)
	return append(f.out, c.Newer...)
}

// ParseCounters reads what AppendCounters wrote.
func ParseCounters(data []byte, c *Counters) (err error) {
	f := read(string(data))
	*c = Counters{}
	c.fields(&f)
	c.Newer, err = f.end()
	return err
}

// IsZero reports a queue without a task: its figures need not be kept.
func (c *Counters) IsZero() bool {
	for _, n := range c.Ready {
		if n != 0 {
			return false
		}
	}
	return c.Delayed == 0 && c.Expiring == 0 && c.InProgress == 0 && c.Dead == 0 && c.Done == 0 && c.Limited == 0
}

// ReadyTotal is the number of pending tasks over all priorities.
func (c *Counters) ReadyTotal() int64 {
	var total int64
	for _, n := range c.Ready {
		total += n
	}
	return total
}

// Waiting is how many tasks wait: ready, delayed, or for their concurrency keys.
func (c *Counters) Waiting() int64 { return c.ReadyTotal() + c.Delayed + c.Limited }

// Count adds one entry of the queue's orders. Keys come in order, so the first
// of each kind is its watermark.
func (c *Counters) Count(p *Key, value []byte) {
	switch p.Family {
	case FamilyPending:
		if c.Ready[p.Priority] == 0 {
			c.ReadyWatermark[p.Priority] = p.Seq
			// The time of a damaged entry stays unknown, which is 0.
			c.ReadySinceMs[p.Priority], _ = ParseReadyAt(value)
		}
		c.Ready[p.Priority]++
	case FamilyInProgress:
		if c.InProgress == 0 {
			c.LeaseWatermark = RankOf(p.ID)
		}
		c.InProgress++
	case FamilyDelayed:
		countTimed(&c.Delayed, &c.DelayedWatermarkMs, p.AtMs)
	case FamilyExpiring:
		countTimed(&c.Expiring, &c.ExpiringWatermarkMs, p.AtMs)
	case FamilyDead:
		countTimed(&c.Dead, &c.DeadWatermarkMs, p.AtMs)
		ended, _ := ParseEnded(value) // Check names one that is damaged
		if ended.Cause == wire.DeadFailed {
			countTimed(&c.DeadBy[wire.DeadFailed], &c.FailedWatermarkMs, p.AtMs)
		} else {
			c.DeadBy[ended.Cause]++
		}
	case FamilyLimited:
		c.Limited++
	case FamilyDone:
		countTimed(&c.Done, &c.DoneWatermarkMs, p.AtMs)
		c.Done += int64(p.Tasks() - 1)
	}
}

func countTimed(n, watermarkMs *int64, atMs int64) {
	if *n == 0 {
		*watermarkMs = atMs
	}
	*n++
}

// Timed is the figure of a family that is no priority, and its lower bound if it is
// ordered by time.
func (c *Counters) Timed(f Family) (count, watermarkMs int64) {
	switch f {
	case FamilyDelayed:
		return c.Delayed, c.DelayedWatermarkMs
	case FamilyDead:
		return c.Dead, c.DeadWatermarkMs
	case FamilyDone:
		return c.Done, c.DoneWatermarkMs
	case FamilyInProgress:
		return c.InProgress, 0
	default:
		panic(fmt.Sprintf("record: family %d has no single figure", f))
	}
}
