package wire

import "fmt"

// DeadCause is why a task is a dead letter; 0 is for a task that is none.
type DeadCause uint8

// The causes.
const (
	// DeadExhausted: the attempts are used up.
	DeadExhausted DeadCause = 1 + iota
	// DeadReleased: the task was released too often.
	DeadReleased
	// DeadFailed: a worker ended it FAILED.
	DeadFailed
	// DeadKinds is the length of a list that is indexed by cause, with 0.
	DeadKinds = 1 + iota
)

const (
	// MaxFailedLetters is how many dead letters with the cause DeadFailed a shard keeps of
	// a queue without a retention of dead letters.
	MaxFailedLetters = 100_000
	// FailedForSeconds is how long it keeps them if neither the queue nor the server has
	// such a retention: seven days.
	FailedForSeconds = 7 * 86_400
)

var deadCauseTexts = [DeadKinds]string{DeadExhausted: "exhausted", DeadReleased: "released_too_often", DeadFailed: "failed"}

// String is the cause as it stands in JSON, empty for 0.
func (c DeadCause) String() string {
	if c >= DeadKinds {
		return "unknown"
	}
	return deadCauseTexts[c]
}

// parseDeadCause reads the text that String returns.
func parseDeadCause(text string) (DeadCause, bool) {
	for c := DeadExhausted; c < DeadKinds; c++ {
		if deadCauseTexts[c] == text {
			return c, true
		}
	}
	return 0, false
}

// DeadCauses is a set of causes. The zero value has all of them.
type DeadCauses uint8

// OnlyDead is the set of these causes.
func OnlyDead(causes ...DeadCause) (set DeadCauses) {
	for _, c := range causes {
		set |= 1 << c
	}
	return set
}

// Has reports whether a cause is in the set.
func (s DeadCauses) Has(c DeadCause) bool { return s == 0 || s&(1<<c) != 0 }

// allDeadCauses is the word for the set of all causes.
const allDeadCauses = "all"

// ParseDeadCauses reads the name of one cause, or allDeadCauses.
func ParseDeadCauses(text string) (DeadCauses, *Error) {
	c, known := parseDeadCause(text)
	switch {
	case known:
		return OnlyDead(c), nil
	case text == allDeadCauses:
		return 0, nil
	}
	return 0, Refuse(CodeInvalidArgument, fmt.Sprintf("cause must be exhausted, released_too_often, failed or all, got %.40q", text))
}
