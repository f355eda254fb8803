package shard

import (
	"codeq/record"
	"codeq/wire"
)

// Message is what reaches a shard through its mailbox. The set is closed: the
// types of this file. A message belongs to the shard once it is pushed; the
// sender must not touch it, nor the slices in it, again.
type Message interface{ message() }

// Asker says where the answer to a message goes. Ref is the sender's own
// number for the request and comes back in the answer. A nil Sink wants none.
type Asker struct {
	Sink Sink
	Ref  Ref
}

// Reference is the ref of the asker; messages with an answer embed it.
func (a Asker) Reference() Ref { return a.Ref }

// Owner is who acts on a delivery: the authenticated principal, never what a
// body claims. WorkerID alone is a claim of the body: it narrows a call without
// a token to the deliveries of one worker, and means nothing else.
type Owner struct {
	Tenant   string
	Subject  string
	WorkerID string
}

// Enqueue makes a task. The router has drawn ID so that it hashes to this
// shard. Answer: Enqueued or Refused.
type Enqueue struct {
	Asker
	ID     wire.TaskID
	Tenant string
	wire.EnqueueRequest
	// Fingerprint is compared when the key is already taken; see
	// FingerprintOf.
	Fingerprint [32]byte
	// WantTask asks for the whole task in the answer, as HTTP does.
	WantTask bool
}

// Subscribe consumers a session in this shard, or replaces its subscription; the
// tasks in flight stay. Commands may hold wire.AllCommands. Answer: Subscribed.
type Subscribe struct {
	Asker
	Consumer *Consumer
	Commands []string
	// LeaseForMs is 0 when the queue of each task decides.
	LeaseForMs int64
}

// Claim asks this shard once for tasks, as many as the consumer has room for, and
// leaves nothing behind: what is there comes as Granted, then Claimed says that
// this was all. Answer: Claimed.
type Claim struct {
	Asker
	// CountOnly grants nothing and asks how much there is.
	CountOnly  bool
	Consumer   *Consumer
	Commands   []string
	LeaseForMs int64
}

// HandedCredit brings credits of the consumer that this shard waited for. It
// grants with them or gives them again. No answer. A control message.
type HandedCredit struct {
	Consumer *Consumer
	Credits  int
}

// Received confirms deliveries of a session, whose task frames arrived, or of a
// claim, whose answer was written. No answer; what is not (or no longer) that
// consumer's is ignored. For a claim it is a control message.
type Received struct {
	Consumer *Consumer
	Tasks    []wire.TaskRef
}

// Undelivered returns deliveries whose frames never left, or whose client was
// gone before the first byte of the answer to its claim: back to their old
// place at once, no attempt counted. No answer. For a claim it is a control
// message.
type Undelivered struct {
	Consumer *Consumer
	Tasks    []wire.TaskRef
}

// Result ends a task with an outcome. Answer: Completed or Refused.
type Result struct {
	Asker
	Owner
	wire.TaskRef
	wire.ResultRequest
	// HasCredit says that a credit of the asking consumer is taken for the delivery
	// and comes back with the answer, unless that is Completed and says Kept.
	HasCredit bool
}

// End ends a delivery without an outcome. Answer: Requeued or Refused.
type End struct {
	Asker
	Owner
	wire.TaskRef
	How How
	// NackRequest is what a Nack says, ReleaseRequest what a Release says.
	wire.NackRequest
	wire.ReleaseRequest
}

// How is how a delivery ends without an outcome.
type How uint8

const (
	// Nack counts an attempt; the task is tried again after a delay or becomes a dead letter.
	Nack How = iota
	// Abandon counts an attempt; the task goes back to the tail at once.
	Abandon
	// Release counts no attempt; the task goes back to its old place.
	Release
)

// Heartbeat extends leases. Tasks nil means all deliveries of Consumer in this
// shard. ExtendForMs 0 means the length each lease was granted with. A
// delivery named with its token is bound to Consumer from now on. Answer: Extended.
type Heartbeat struct {
	Asker
	Owner
	Consumer    *Consumer
	Tasks       []wire.TaskRef
	ExtendForMs int64
}

// Extend is the heartbeat over HTTP: it extends the one lease it names, by
// ExtendForMs or, if that is 0, by the length it was granted with. It carries
// on what a session left. Answer: Extended or Refused.
type Extend struct {
	Asker
	Owner
	wire.TaskRef
	ExtendForMs int64
	// OnItsWay says that it is asked for an answer that is being written: it
	// confirms nothing.
	OnItsWay bool
}

// SessionGone tells that the consumer's socket ended: unconfirmed deliveries go back at
// once, confirmed ones have the resume grace. Of a socket that a newer one of
// the same session has replaced it says nothing new. No answer. A control
// message.
type SessionGone struct {
	Consumer *Consumer
	// Code is what the socket was closed with, 0 if that is not known.
	Code uint16
}

// Resume consumers a new socket of a session that was here before. Whatever socket
// the session had is gone with it; the deliveries that had arrived are in flight
// again. Answer: Resumed. A control message.
type Resume struct {
	Asker
	Consumer *Consumer
}

// DrainBarrier asks for a word behind everything that this shard has granted to a consumer
// whose window has just become 0. Answer: Drained. A control message.
type DrainBarrier struct {
	Asker
	Consumer *Consumer
}

// Watch asks to be told when a task of the tenant reaches a terminal state.
// Answer: Ended, at once if it already has, or Refused (task_not_found). The
// watcher reads the outcome from the store after that.
type Watch struct {
	Asker
	Tenant string
	TaskID wire.TaskID
}

// Unwatch takes back a Watch by its Sink and Ref. No answer.
type Unwatch struct {
	Asker
	TaskID wire.TaskID
}

// Replay makes a dead letter a ready task again, with all its attempts.
// Commands are those the asker may use, nil means all. Answer: Replayed or
// Refused.
type Replay struct {
	Asker
	Tenant   string
	Commands []string
	TaskID   wire.TaskID
	// EndedAtMs is when the letter that is meant ended, as that of Purge, 0 for any.
	EndedAtMs int64
}

// Explain asks why a task of the tenant waits. Answer: Explained.
type Explain struct {
	Asker
	Tenant string
	TaskID wire.TaskID
}

// TellLeases asks when the leases of some tasks of the tenant end, as far as they are
// in progress. Answer: LeasesTold.
type TellLeases struct {
	Asker
	Tenant string
	Tasks  []wire.TaskID
}

// Purge removes a dead letter that ended at EndedAtMs: one that was replayed
// since, and died again, is another. Commands are those the asker may use, nil
// means all. Answer: Purged or Refused.
type Purge struct {
	Asker
	Tenant    string
	Commands  []string
	TaskID    wire.TaskID
	EndedAtMs int64
}

// Cancel ends a task that has not ended yet. Commands are those the asker may
// use, nil means all. Answer: Cancelled, also for a task that was cancelled
// before, or Refused.
type Cancel struct {
	Asker
	Tenant   string
	Commands []string
	TaskID   wire.TaskID
	// Only is where the task must be, empty for anywhere: it may have moved on since
	// somebody chose it.
	Only wire.Location
}

// RunNow makes a delayed task ready before its time. Commands are those the asker
// may use, nil means all. Answer: Moved or Refused.
type RunNow struct {
	Asker
	Tenant   string
	Commands []string
	TaskID   wire.TaskID
}

// Prioritize gives a task that waits another priority. Commands and Only are those
// of Cancel. Answer: Moved, also for a task that has that priority, or Refused.
type Prioritize struct {
	Asker
	Tenant   string
	Commands []string
	TaskID   wire.TaskID
	Only     wire.Location
	Priority int
}

// Freeze asks a shard that is not the home of a queue whether it has no task of
// it, and to refuse new ones until CopySettings thaws it. Answer: Frozen, or
// Refused, and then nothing is frozen.
type Freeze struct {
	Asker
	Queue record.QueueKey
	// Delete asks instead whether what the shard has of the queue may go with it,
	// and, besides, to hand out none of it.
	Delete *QueueDelete
}

// Configure changes the settings of a queue. Only its home shard gets it, and
// decides by it. One whose queue is not spread comes when all others are frozen.
// Answer: Configured or Refused.
type Configure struct {
	Asker
	Queue  record.QueueKey
	Change SettingsChange
}

// SettingsChange says what changes; what is nil stays.
type SettingsChange struct {
	Paused   *bool
	Settings *wire.QueueSettings
	// Delete begins to delete the queue; that cannot be taken back.
	Delete *QueueDelete
}

// Drop asks to forget the settings of a queue that is deleted, once the shard has
// removed all that it has of it. The home gets it when all others have. Answer:
// Dropped.
type Drop struct {
	Asker
	Queue record.QueueKey
}

// CopySettings brings a shard the settings that the home of the queue has
// decided. Answer: Configured, whether or not it had newer ones.
type CopySettings struct {
	Asker
	Queue    record.QueueKey
	Settings record.Settings
	// Thaw ends the Freeze of the same change. Of a change that failed there are
	// no settings.
	Thaw bool
}

// Cleanup removes tasks of some queues that ended before a time in Unix
// milliseconds, 0 for those whose retention is over, and at most Limit of all of
// them, queue by queue. No queue is named twice, and the shard keeps the list.
// Answer: Cleaned, when all are removed.
type Cleanup struct {
	Asker
	Queues   []record.QueueKey
	BeforeMs int64
	Limit    int
}

// SpaceChanged wakes the shard because the disk allows more, or less, than
// before. No answer. A control message.
type SpaceChanged struct{}

// Whatever names who asks is a message; these name nobody.
func (Asker) message()         {}
func (*HandedCredit) message() {}
func (*Received) message()     {}
func (*Undelivered) message()  {}
func (*SessionGone) message()  {}
func (*SpaceChanged) message() {}
