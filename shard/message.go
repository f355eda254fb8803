package shard

import (
	"fmt"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Message is an input of a shard, from its mailbox. The set is closed: the types of
// this file. A message belongs to the shard once it is pushed; the sender must not
// touch it, nor the slices in it, again.
type Message interface {
	// message is who asks, nobody for a message without an answer.
	message() Asker
}

// Asker says where the answer to a message goes. Ref is the sender's own
// number for the request and comes back in the answer. A nil Sink wants none.
type Asker struct {
	Sink Sink
	Ref  Ref
}

// Reference is the ref of the asker; messages with an answer embed it.
func (a Asker) Reference() Ref { return a.Ref }

// Owner is the authenticated principal that acts on a delivery, never a name from a
// body. Only WorkerID comes from the body: it restricts a call without a token to
// the deliveries of one worker.
type Owner struct {
	Tenant   string
	Subject  string
	WorkerID string
}

// Holder heads a request about one delivery: where the answer goes, who acts, on which.
type Holder struct {
	Asker
	Owner
	wire.TaskRef
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
	// Pass goes back to the door if no task is made.
	Pass
}

// Subscribe subscribes a session in this shard, or replaces its subscriptions; the
// tasks in flight stay. Commands may hold wire.AllCommands. Answer: Subscribed.
type Subscribe struct {
	Asker
	Consumer *Consumer
	Commands []string
	// LeaseForMs is the lease of each grant; 0 is that of the task's queue.
	LeaseForMs int64
}

// Claim asks this shard once for tasks, as many as the consumer has credit for, and
// leaves no subscription. Granted comes for each task. Answer: Claimed, after them.
type Claim struct {
	Asker
	// CountOnly grants nothing; the answer only counts ready queues.
	CountOnly  bool
	Consumer   *Consumer
	Commands   []string
	LeaseForMs int64
}

// HandedCredit brings credits of the consumer that this shard waited for. The shard
// grants with them or returns them. No answer. A control message.
type HandedCredit struct {
	Consumer *Consumer
	Credits  int
}

// HandedPlaces brings places of the limiter of a queue that this shard waited for. The
// shard grants with them or returns them. No answer. A control message.
type HandedPlaces struct {
	Limiter Limiter
	Queue   record.QueueKey
	Places  int
}

// Received confirms deliveries of a session, whose task frames arrived, or of a
// claim, whose answer was written. No answer. The shard ignores deliveries that are
// not, or no longer, those of the consumer. For a claim it is a control message.
type Received struct {
	Consumer *Consumer
	Tasks    []wire.TaskRef
}

// Undelivered ends deliveries whose frames never left, or whose client disconnected
// before the first byte of the answer to its claim. The tasks return to their old
// place at once and no attempt counts. No answer. For a claim it is a control
// message.
type Undelivered struct {
	Consumer *Consumer
	Tasks    []wire.TaskRef
}

// Result ends a task with an outcome. Answer: Completed or Refused.
type Result struct {
	Holder
	wire.ResultRequest
	// HasCredit says that a credit of the asking consumer is taken for the delivery
	// and is returned with the answer, unless that is Completed with CreditReused.
	HasCredit bool
}

// End ends a delivery without an outcome. Answer: Requeued or Refused.
type End struct {
	Holder
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
	// PutOff counts no attempt and leaves no line in the history; the task waits for the
	// delay of NackRequest. For workers within the server.
	PutOff
)

// Heartbeat extends leases. Tasks nil means all deliveries of Consumer in this
// shard. With ExtendForMs 0 each lease is extended by the length it was granted
// with. A delivery named with its token is bound to Consumer. Answer: Extended.
type Heartbeat struct {
	Asker
	Owner
	Consumer    *Consumer
	Tasks       []wire.TaskRef
	ExtendForMs int64
}

// Extend is the heartbeat over HTTP: it extends the one lease it names, by
// ExtendForMs or, if that is 0, by the length it was granted with. It also extends
// a delivery whose session is gone. Answer: Extended or Refused.
type Extend struct {
	Holder
	ExtendForMs int64
	// OnItsWay reports that the answer to the claim is still being written: the
	// lease is extended, but the delivery is not confirmed.
	OnItsWay bool
}

// Report says how far the work on a delivery is, or what its program prints; one of Progress and
// Output is set. It does not extend the lease. Answer: Reported or Refused.
type Report struct {
	Holder
	Progress *wire.ProgressRequest
	Output   *wire.OutputRequest
}

// Upload is about files that the worker of a delivery uploads: it asks for the numbers of Begin
// new ones, or lists one that is on disk. Answer: Uploaded or Refused.
type Upload struct {
	Holder
	Begin    int
	Artifact *wire.Artifact
}

// SessionGone reports that the consumer's socket ended: unconfirmed deliveries end
// at once, confirmed ones stay for the resume grace. The shard ignores it if a
// newer socket of the session has resumed. No answer. A control message.
type SessionGone struct {
	Consumer *Consumer
	// Code is the close code of the socket, 0 if unknown.
	Code uint16
}

// Resume replaces the socket of a session. The old socket counts as ended;
// confirmed deliveries are in flight again. Answer: Resumed. A control message.
type Resume struct {
	Asker
	Consumer *Consumer
}

// DrainBarrier asks for an answer after every Granted to a consumer whose window
// has just become 0. Answer: Drained. A control message.
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

// Unwatch cancels a Watch by its Sink and Ref. No answer.
type Unwatch struct {
	Asker
	TaskID wire.TaskID
}

// Manage changes one task for somebody who is not its worker. Answer: Managed or
// Refused.
type Manage struct {
	Asker
	Do     Verb
	Tenant string
	// By is the subject that asks, for the history of the task.
	By string
	// Commands are those the asker may use, nil means all.
	Commands []string
	TaskID   wire.TaskID
	// Only is the place where Cancel and Prioritize must find the task, empty for any:
	// it may have moved since the caller chose it.
	Only wire.Location
	// EndedAtMs is when the dead letter ended that Replay or Purge means, in Unix
	// milliseconds; one that was replayed and died again since has another time and is
	// refused. 0 is any for Replay and none for Purge.
	EndedAtMs int64
	// Priority is the new one, for Prioritize.
	Priority int
}

// Verb is what Manage does with the task.
type Verb uint8

const (
	// Cancel ends a task that has not ended yet. It succeeds again for a cancelled task.
	Cancel Verb = iota
	// Replay makes a dead letter a ready task again, with all its attempts.
	Replay
	// Purge removes a dead letter.
	Purge
	// RunNow makes a delayed task ready before its time.
	RunNow
	// Prioritize gives a task that waits another priority. It succeeds for a task that
	// has that priority.
	Prioritize
	// TakeBack ends the delivery of a task in progress and makes the task ready.
	TakeBack
)

// Explain asks why a task of the tenant waits. Answer: Explained.
type Explain struct {
	Asker
	Tenant string
	TaskID wire.TaskID
}

// TellLeases asks when the leases end of those tasks of the tenant that are in
// progress. Answer: LeasesTold.
type TellLeases struct {
	Asker
	Tenant string
	Tasks  []wire.TaskID
}

// Freeze asks a shard that is not the home of a queue whether it has no task of
// it, and to refuse new ones until CopySettings thaws it. Answer: Frozen, or
// Refused, and then nothing is frozen.
type Freeze struct {
	Asker
	Queue record.QueueKey
	// Delete asks instead whether the tasks in this shard allow the deletion;
	// frozen, the shard grants none of them.
	Delete *QueueDelete
}

// Configure changes the settings of a queue. Only its home shard gets it, and
// decides. A change that may end the spread of a queue comes when all other shards
// are frozen. Answer: Configured or Refused.
type Configure struct {
	Asker
	Queue  record.QueueKey
	Change SettingsChange
}

// SettingsChange holds the new settings; a nil field changes nothing.
type SettingsChange struct {
	Paused   *bool
	Settings *wire.QueueSettings
	// Delete begins to delete the queue; that cannot be taken back.
	Delete *QueueDelete
}

// Drop asks the shard to forget the settings of a deleted queue once it has removed
// all its tasks. The home gets it when all others have answered. Answer: Dropped.
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
	// Thaw ends the Freeze of the same change. A change that failed has no
	// settings.
	Thaw bool
}

// Name changes a named record of a tenant. Only the home of the tenant gets it, and
// decides. Answer: Named or Refused. A control message.
type Name struct {
	Asker
	NameChange
}

// NameChange is what a record becomes.
type NameChange struct {
	Key record.NamedKey
	// Value is the new value; empty deletes the record.
	Value string
	// IfVersion is the version that the record must have, 0 for none; below 0 any is good.
	IfVersion int64
	// Most is how many records of the kind the tenant may have; 0 is no limit.
	Most int
}

// CopyNamed brings a shard what the home of a tenant has decided. Answer: Named. A
// control message.
type CopyNamed struct {
	Asker
	Record record.Named
}

// Cleanup removes tasks of these queues that ended before a time in Unix
// milliseconds, with 0 those whose retention is over. It removes at most Limit in
// all, queue by queue. The list names no queue twice and belongs to the shard.
// Answer: Cleaned, when all are removed.
type Cleanup struct {
	Asker
	Queues   []record.QueueKey
	BeforeMs int64
	Limit    int
}

// SpaceChanged wakes the shard when the disk allows more or less than before. No
// answer. A control message.
type SpaceChanged struct{}

// A type with an Asker is a message; these have none.
func (a Asker) message() Asker       { return a }
func (*HandedCredit) message() Asker { return Asker{} }
func (*HandedPlaces) message() Asker { return Asker{} }
func (*Received) message() Asker     { return Asker{} }
func (*Undelivered) message() Asker  { return Asker{} }
func (*SessionGone) message() Asker  { return Asker{} }
func (*SpaceChanged) message() Asker { return Asker{} }

// step carries out one message.
func (s *Shard) step(m Message) {
	if s.space >= store.OnlyDelete && s.refuseNoSpace(m) {
		return
	}
	switch m := m.(type) {
	case *Enqueue:
		s.enqueue(m)
	case *Subscribe:
		s.subscribe(m)
	case *Claim:
		s.claim(m)
	case *Extend:
		s.extend(m)
	case *HandedCredit:
		s.handedCredit(m)
	case *HandedPlaces:
		s.handedPlaces(m)
	case *Received:
		s.received(m)
	case *Undelivered:
		s.undelivered(m)
	case *Result:
		s.result(m)
	case *End:
		s.end(m)
	case *Heartbeat:
		s.heartbeat(m)
	case *Report:
		s.report(m)
	case *Upload:
		s.upload(m)
	case *SessionGone:
		s.sessionGone(m)
	case *Resume:
		s.resume(m)
	case *DrainBarrier:
		s.drainBarrier(m)
	case *Watch:
		s.watch(m)
	case *Unwatch:
		s.unwatch(m)
	case *Manage:
		s.manage(m)
	case *Explain:
		// answerExplains answers after the grants: what is ready then still waits.
		s.explains = append(s.explains, m)
	case *TellLeases:
		s.tellLeases(m)
	case *Cleanup:
		s.cleanup(m)
	case *Freeze:
		s.freeze(m)
	case *Configure:
		s.configure(m)
	case *CopySettings:
		s.copySettings(m)
	case *Name:
		s.name(m)
	case *CopyNamed:
		s.copyNamed(m)
	case *Drop:
		s.drops = append(s.drops, m)
	case *SpaceChanged:
		// The round itself is the answer.
	default:
		panic(fmt.Sprintf("shard: unknown message %T", m))
	}
}
