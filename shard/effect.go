package shard

import (
	"codeq/record"
	"codeq/wire"
)

// Sink is whoever waits for effects: a session, one HTTP request, a test.
// Deliver is called from the goroutine that released the sync which made the
// effects durable, in the order the shard made them. It must not block and
// may keep the slice.
type Sink interface {
	Deliver(effects []Effect)
}

// Effect is an output of a shard. It is delivered only after the batch that caused
// it is durable. The receiver owns it: it shares no memory with the shard. The set
// is closed: the types of this file.
type Effect interface{ effect() }

// Ref is the number that the sender of a message has given it. What embeds it is the
// answer to that message.
type Ref uint64

func (*Ref) effect() {}

// Reference is the ref itself; answers embed it.
func (r *Ref) Reference() Ref { return *r }

// Referenced is a message that names who asks, or the answer to one: every effect but
// Granted, Revoked, Answered and Freed.
type Referenced interface{ Reference() Ref }

// Addressed is an effect and the sink it is meant for.
type Addressed struct {
	Sink   Sink
	Effect Effect
}

// Enqueued answers Enqueue. Task is set when the message wanted it. Replayed
// means an earlier task had the same key and content.
type Enqueued struct {
	Ref
	TaskID   wire.TaskID
	Task     *wire.Task
	Replayed bool
}

// Refused answers any message that was not carried out.
type Refused struct {
	Ref
	TaskID wire.TaskID
	Err    *wire.Error
}

// Subscribed answers Subscribe.
type Subscribed struct{ Ref }

// Resumed answers Resume: the deliveries of the session in this shard, in the order
// in which they were bound to it.
type Resumed struct {
	Ref
	Held []wire.TaskRef
}

// Drained answers DrainBarrier. It comes after every Granted of the consumer.
type Drained struct{ Ref }

// Claimed answers Claim. It comes after every Granted of the claim. Ready is how
// many of its queues still have ready tasks.
type Claimed struct {
	Ref
	Ready int
}

// Granted is one delivery to the consumer it is addressed to. The grant took one
// credit of the consumer and len(Task.Payload) of its untaken bytes.
type Granted struct {
	Task         *wire.Task
	Token        wire.Token
	LeaseForMs   int64
	LeaseUntilMs int64
	// RunForMs is how long it may run once it is confirmed, RunUntilMs when that is
	// over at the earliest; both are 0 for as long as its lease is extended.
	RunForMs   int64
	RunUntilMs int64
}

// Completed answers Result.
type Completed struct {
	Ref
	Record *wire.ResultRecord
	// CreditReused reports that another grant has used the credit of the delivery;
	// only if the message had HasCredit.
	CreditReused bool
}

// Requeued answers End. Status is wire.NackRequeued, wire.NackDeadLettered or
// wire.NackExpired.
type Requeued struct {
	Ref
	TaskID       wire.TaskID
	Status       string
	DelaySeconds int64
}

// Extended answers Heartbeat and Extend: the earliest new lease end in this shard (0 if
// nothing was extended), the earliest end of a run of what was extended (0 if none has
// one), and the deliveries that are no longer the owner's.
type Extended struct {
	Ref
	LeaseUntilMs int64
	RunUntilMs   int64
	Lost         []wire.TaskRef
}

// Reported answers Report. Its progress may not be on disk before a second has passed.
type Reported struct{ Ref }

// Uploaded answers Upload: the delivery and the number of the first file that was begun, or the
// artifact that was listed, with its URL, and the file whose name it has taken, empty for none.
type Uploaded struct {
	Ref
	Delivery int
	First    int
	Artifact *wire.Artifact
	Replaced string
}

// Frozen answers Freeze: the shard has no task of the queue and makes none.
type Frozen struct{ Ref }

// Dropped answers Drop: the shard has neither tasks nor settings of the queue.
type Dropped struct{ Ref }

// Configured answers Configure and CopySettings with the settings that the shard
// has now.
type Configured struct {
	Ref
	Settings record.Settings
}

// Named answers Name and CopyNamed with the record that holds now, which has no value
// once it is deleted.
type Named struct {
	Ref
	Record record.Named
}

// Cleaned answers Cleanup with how many tasks were removed.
type Cleaned struct {
	Ref
	Deleted int
}

// Managed answers Manage.
type Managed struct {
	Ref
	TaskID wire.TaskID
	Did    Verb
}

// Explained answers Explain. Waiting is nil for a task that does not wait or is
// unknown; it describes the task since UpdatedAtMs.
type Explained struct {
	Ref
	TaskID      wire.TaskID
	UpdatedAtMs int64
	Waiting     *wire.Waiting
}

// Revoked tells the consumer it is addressed to that it lost a delivery.
type Revoked struct {
	wire.TaskRef
	Reason string
}

// Answered tells the consumer it is addressed to that its worker has answered for a
// delivery outside its session: the session returns the credit, unless it has done
// so.
type Answered struct {
	wire.TaskRef
}

// Freed returns places to the limiter it is addressed to, and those of a backlog with the
// bytes of their payloads, and the bytes of files.
type Freed struct {
	Places           int
	Bytes, FileBytes int64
}

// Ended tells a watcher that the task is in a terminal state.
type Ended struct {
	Ref
	TaskID wire.TaskID
}

// LeasesTold answers TellLeases: the deliveries of those of its tasks that are in
// progress, in its order.
type LeasesTold struct {
	Ref
	Leases []ToldLease
}

// ToldLease is the part of a delivery that only the shard has. It may be of a newer
// delivery than the asker has read.
type ToldLease struct {
	TaskID   wire.TaskID
	Delivery int
	// LeaseUntilMs and RunUntilMs are the ends promised to the worker, see
	// lease.Entry.Promise.
	LeaseUntilMs, RunUntilMs int64
	// Progress is the newest of the delivery, nil if it had none; Printed is that of its lease.
	Progress *wire.TaskProgress
	Printed  bool
}

func (*Granted) effect()  {}
func (*Revoked) effect()  {}
func (*Freed) effect()    {}
func (*Answered) effect() {}
