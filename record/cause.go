package record

// Cause says why a task moved. Its event has it, and so has, as a word, the history
// line of a delivery that ended without success. 0 is no cause.
type Cause uint8

// The causes, one for each way a task can move.
const (
	CauseEnqueue Cause = iota + 1
	CauseDue
	CauseGrant
	CauseResult
	CauseNack
	CauseAbandon
	CauseRelease
	CauseExpired
	CauseTimeout
	CauseSessionGone
	CauseUndelivered
	CauseSuspect
	CauseCancel
	CauseTaskExpired
	CauseRetention
	CauseReplay
	CauseCleanup
	CausePurge
	CauseBound
	CauseRunNow
	CauseMove
	CauseDelete
	// CauseUnreadable removes a task whose record is missing or cannot be decoded.
	CauseUnreadable
	// CauseTakenBack ends a delivery because a person took the task from its worker.
	CauseTakenBack
	// CauseKeyFull takes a ready task back to those that wait for its concurrency key,
	// CauseKeyFree makes one of them ready.
	CauseKeyFull
	CauseKeyFree

	// Causes is the number after the last cause.
	Causes
)

var causeWords = [Causes]string{
	CauseEnqueue:     "enqueue",
	CauseDue:         "due",
	CauseGrant:       "grant",
	CauseResult:      "result",
	CauseNack:        "nack",
	CauseAbandon:     "abandon",
	CauseRelease:     "release",
	CauseExpired:     "lease_expired",
	CauseTimeout:     "timeout",
	CauseSessionGone: "session_gone",
	CauseUndelivered: "undelivered",
	CauseSuspect:     "suspect",
	CauseCancel:      "cancel",
	CauseTaskExpired: "expired",
	CauseRetention:   "retention",
	CauseReplay:      "replay",
	CauseCleanup:     "cleanup",
	CausePurge:       "purge",
	CauseBound:       "dlq_bound",
	CauseRunNow:      "run_now",
	CauseMove:        "move",
	CauseDelete:      "queue_deleted",
	CauseUnreadable:  "unreadable",
	CauseTakenBack:   "taken_back",
	CauseKeyFull:     "key_full",
	CauseKeyFree:     "key_free",
}

// String is the word that clients see.
func (c Cause) String() string {
	if c >= Causes {
		return "unknown"
	}
	return causeWords[c]
}
