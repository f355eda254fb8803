package record

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"codeq/wire"
)

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

	// Seq is the place in the pending order while Location is PENDING_LIST, the place to
	// take there while it is LIMITED, and the place to go back to while it is in progress.
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
	// LastToken is the token of the newest delivery if that ended by time or by a
	// lost socket, zero when no late completion is accepted. LastSubject is who
	// held it, LastWorkerID its display name.
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
	Labels         wire.Labels
	// Handled says that a person did something to the task while no worker had it, or that
	// its end made a callback, so that it has a history without a delivery.
	Handled bool
	// ConcurrencyKey is the key under which it waits while Location is LIMITED.
	ConcurrencyKey string
	// Webhook is the URL that gets the outcome.
	Webhook string
	// Progress is what the worker of the last delivery with one has said last, a JSON object as
	// wire.AppendProgress writes it; empty for none. Printed says that a delivery had output.
	// While the task is in progress its Lease may have newer ones.
	Progress string
	Printed  bool
	// Files are those that its workers have uploaded. While the task is in progress its Lease has
	// the newer ones.
	Files Files

	// Payload is the payload if it is small, else empty; see Batch.GivePayload.
	Payload string
	// OutcomeHere says that the outcome of the task is Status, EndedAtMs and
	// Result, which may be empty, and has no key of its own; see Batch.GiveResult.
	OutcomeHere bool
	Result      string

	// Newer has the fields that a newer program has added.
	Newer string
}

func (r *Task) fields(f *form) {
	f.str(1, "command", &r.Command)
	f.str(2, "tenant", &r.Tenant)
	number(f, 3, "priority", &r.Priority)
	word(f, 4, "status", &r.Status, statuses[:])
	word(f, 5, "location", &r.Location, locations[:])
	number(f, 6, "attempts", &r.Attempts)
	number(f, 7, "maxAttempts", &r.MaxAttempts)
	number(f, 8, "payloadBytes", &r.PayloadBytes)
	number(f, 9, "createdAtMs", &r.CreatedAtMs)
	number(f, 10, "updatedAtMs", &r.UpdatedAtMs)
	number(f, 11, "seq", &r.Seq)
	number(f, 12, "dueAtMs", &r.DueAtMs)
	number(f, 13, "endedAtMs", &r.EndedAtMs)
	number(f, 14, "expiresAtMs", &r.ExpiresAtMs)
	f.flag(15, "expired", &r.Expired)
	number(f, 16, "timeoutSeconds", &r.TimeoutSeconds)
	number(f, 17, "deliveries", &r.Deliveries)
	f.array(18, "lastToken", r.LastToken[:], hex.AppendEncode)
	f.str(19, "lastSubject", &r.LastSubject)
	f.str(20, "lastWorkerId", &r.LastWorkerID)
	f.flag(21, "lastOverHttp", &r.LastOverHTTP)
	f.array(22, "resultToken", r.ResultToken[:], hex.AppendEncode)
	number(f, 23, "releases", &r.Releases)
	number(f, 24, "losses", &r.Losses)
	number(f, 25, "undelivered", &r.Undelivered)
	number(f, 26, "deadCause", &r.DeadCause)
	f.str(27, "error", &r.Error)
	f.str(28, "idempotencyKey", &r.IdempotencyKey)
	f.array(29, "fingerprint", r.Fingerprint[:], hex.AppendEncode)
	f.str(30, "traceParent", &r.TraceParent)
	f.str(31, "traceState", &r.TraceState)
	f.raw(payloadField, "payload", &r.Payload)
	f.flag(33, "outcomeHere", &r.OutcomeHere)
	f.raw(34, "result", &r.Result)
	f.str(35, "labels", (*string)(&r.Labels))
	f.flag(36, "handled", &r.Handled)
	f.str(37, "concurrencyKey", &r.ConcurrencyKey)
	f.str(38, "webhook", &r.Webhook)
	f.raw(39, "progress", &r.Progress)
	f.flag(40, "printed", &r.Printed)
	number(f, 41, "filesBegun", &r.Files.Begun)
	f.raw(42, "filesListed", &r.Files.Listed)
	number(f, 43, "fileBytes", &r.Files.Bytes)
}

// Files are the files that workers have uploaded for a task.
type Files struct {
	// Begun numbers the files of the task, over all its deliveries. It is on disk before a file of
	// that number is, so that no number is used twice and each file has a task that tells of it.
	Begun int
	// Listed are those of the newest delivery that are whole and on disk, as wire.AppendArtifacts
	// writes them; empty for none, and once no result may name them any more.
	Listed string
	// Bytes are those of the files that count for the tenant: of the listed ones, and of those that
	// the result names once the task has ended.
	Bytes int64
}

const payloadField = 32

// The words of a task by the numbers that stand for them.
var (
	statuses = [...]wire.Status{1: wire.StatusPending, wire.StatusInProgress, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled}

	locations = [...]wire.Location{1: wire.LocationPending, wire.LocationDelayed, wire.LocationInProgress, wire.LocationDead, wire.LocationNone, wire.LocationLimited}
)

// numberOf is the number that stands for a word.
func numberOf[T ~string](word T, table []T) byte {
	n := slices.Index(table, word)
	if n < 1 {
		panic(fmt.Sprintf("record: no number stands for %q", word))
	}
	return byte(n)
}

// AppendTask adds the value of a task. Its id is in the key.
func AppendTask(dst []byte, r *Task) []byte {
	f := form{out: dst}
	r.fields(&f)
	return append(f.out, r.Newer...)
}

// ParseTask reads the value of the task with that id. Every task has a command. data
// may be reused afterwards; the strings of the task share one copy of it.
func ParseTask(id wire.TaskID, data []byte, r *Task) (err error) {
	f := read(string(data))
	*r = Task{ID: id}
	r.fields(&f)
	r.Newer, err = f.end()
	switch {
	case err != nil:
		return err
	case r.Command == "", r.Priority < 0 || r.Priority > wire.MaxPriority, r.DeadCause >= wire.DeadKinds,
		r.Payload != "" && len(r.Payload) != r.PayloadBytes, r.Result != "" && !r.OutcomeHere:
		return ErrDamaged
	}
	return nil
}

// PayloadWithin is the payload that stands in the value of a task, and takes nothing
// else of it apart; false if there is none.
func PayloadWithin(value []byte) ([]byte, bool) {
	for len(value) > 0 {
		tag := value[0]
		n, size := binary.Uvarint(value[1:])
		if size <= 0 || tag>>1 > payloadField {
			return nil, false
		}
		value = value[1+size:]
		if tag&1 != kindBytes {
			continue
		}
		if n > uint64(len(value)) {
			return nil, false
		}
		if tag>>1 == payloadField {
			return value[:n], true
		}
		value = value[n:]
	}
	return nil, false
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
