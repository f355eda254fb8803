package record

import (
	"encoding/binary"

	"codeq/wire"
)

// QueueKey names one queue of a shard: what is claimed together.
type QueueKey struct {
	Command string
	Tenant  string
}

// Task is the small mutable part of a task, rewritten by every
// transition but a grant. History, and a payload or result that is not small,
// have keys of their own. Times are Unix milliseconds. Fields are only ever
// added.
type Task struct {
	ID           wire.TaskID
	Command      string
	Tenant       string
	Priority     int
	Status       wire.Status
	Location     wire.Location
	Attempts     int
	MaxAttempts  int
	PayloadBytes int
	CreatedAtMs  int64
	UpdatedAtMs  int64

	// Seq is the place in the pending order while Location is PENDING_LIST,
	// and the place to go back to while it is in progress.
	Seq uint64
	// DueAtMs is set while Location is DELAYED_ZSET.
	DueAtMs int64
	// EndedAtMs is set once Status is terminal.
	EndedAtMs int64
	// ExpiresAtMs is from when on the task is not handed out, 0 for never. While it
	// waits it has an entry in the order of these times. Expired says that it ended
	// because of that.
	ExpiresAtMs int64
	Expired     bool
	// TimeoutSeconds is how long one delivery may run, 0 where its queue decides.
	TimeoutSeconds int64

	// Deliveries is the number of grants so far. While the task is in
	// progress the number in its Lease is the newer one.
	Deliveries int
	// LastToken is the token of the newest delivery after that ended other
	// than by the worker's own word; zero when no late completion is
	// acceptable. LastSubject is who held it, LastWorkerID its display name.
	LastToken    wire.Token
	LastSubject  string
	LastWorkerID string
	// LastOverHTTP says that this delivery was made over HTTP; see Lease.
	LastOverHTTP bool
	// ResultToken is the token of the delivery that the accepted result ended,
	// for a repeated completion.
	ResultToken wire.Token

	// Releases, Losses and Undelivered count hand-backs, lost leases and
	// deliveries in a row that never arrived.
	Releases    int
	Losses      int
	Undelivered int

	Error string
	// DeadCause is set while Location is DLQ_SET.
	DeadCause      wire.DeadCause
	IdempotencyKey string
	Fingerprint    [32]byte
	TraceParent    string
	TraceState     string

	// Payload is the payload if it is small, else empty; see Batch.GivePayload.
	Payload string
	// OutcomeHere says that the outcome of the task is Status, EndedAtMs and
	// Result, which may be empty, and has no key of its own; see Batch.GiveResult.
	OutcomeHere bool
	Result      string
}

// Expires says whether the task expires by a time.
func (r *Task) Expires(byMs int64) bool { return r.ExpiresAtMs != 0 && r.ExpiresAtMs <= byMs }

// CancelCause is what ended a task that is CANCELLED, empty for whoever asked.
func (r *Task) CancelCause() string {
	if r.Expired {
		return wire.CancelExpired
	}
	return ""
}

// Whole says that payload and outcome are within the record.
func (r *Task) Whole() bool { return r.Payload != "" && r.OutcomeHere }

// Queue is the key of the queue the task belongs to.
func (r *Task) Queue() QueueKey { return QueueKey{Command: r.Command, Tenant: r.Tenant} }

// Lease is the value of the in-progress key: everything a grant decides,
// until the task leaves the in-progress set.
type Lease struct {
	Token    wire.Token
	Delivery int
	// Session carries the lease: its end is the end of the session's grace. It
	// is zero while HTTP carries it, until its own end.
	Session wire.SessionID
	// OverHTTP says that the delivery was made over HTTP, whoever carries its
	// lease since: only then may its holder act without the token.
	OverHTTP bool
	Subject  string
	WorkerID string
	// DeadlineMs is the stored lease end; it may run ahead of the
	// acknowledged one, never behind.
	DeadlineMs int64
	// LeaseForMs is the length asked for by the subscription or claim.
	LeaseForMs  int64
	GrantedAtMs int64
	// RunUntilMs is GrantedAtMs and how long the delivery may run, 0 for as long as
	// its lease is extended. That begins when it is confirmed, so that its end is
	// later as long as the server does not restart.
	RunUntilMs int64
}

// RunForMs is how long the delivery may run, 0 for as long as its lease is
// extended.
func (l *Lease) RunForMs() int64 {
	if l.RunUntilMs == 0 {
		return 0
	}
	return l.RunUntilMs - l.GrantedAtMs
}

// Marks are the high-water marks of one shard, written with every batch.
type Marks struct {
	// Seq is the highest pending sequence ever drawn, Event the number of the
	// last event, TimeMs the latest engine time of a batch.
	Seq    uint64
	Event  uint64
	TimeMs int64
}

// PendingKey is the place of a task in the pending order.
type PendingKey struct {
	Seq uint64
	ID  wire.TaskID
}

// PendingEntry is one entry of the pending order: a place, and since when the
// task is ready.
type PendingEntry struct {
	PendingKey
	ReadyAtMs int64
}

// TimedKey is one entry of an order by time: delayed by due time, expiring by
// when they expire, dead and done by end time.
type TimedKey struct {
	AtMs int64
	ID   wire.TaskID
}

// RankOf is the first part of an id as a number. Ids sort as their ranks do.
func RankOf(id wire.TaskID) uint64 { return binary.BigEndian.Uint64(id[:8]) }
