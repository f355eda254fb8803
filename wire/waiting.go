package wire

// Waiting says why a task is not with a worker.
type Waiting struct {
	// Reason is one of the constants below.
	Reason string
	// Behind is the number of ready tasks that come before it.
	Behind int64
	// BehindKnown: Behind is known.
	BehindKnown bool
	// UntilMs is when a delayed task becomes ready, in Unix milliseconds.
	UntilMs int64
}

// The reasons.
const (
	WaitingDelayed     = "delayed"
	WaitingSuspect     = "suspect"
	WaitingPaused      = "paused"
	WaitingNoWorker    = "no_worker"
	WaitingNoCredit    = "no_room"
	WaitingBehind      = "behind"
	WaitingStorageFull = "storage_full"
)

const (
	waitingReason = iota
	waitingBehind
	waitingUntil
)

var waitingNames = []string{waitingReason: "reason", waitingBehind: "behind", waitingUntil: "until"}

func optWaiting(dst []byte, w *Waiting) []byte {
	if w == nil {
		return dst
	}
	dst = appendText(dst, `,"waiting":{"reason":`, w.Reason)
	if w.BehindKnown {
		dst = appendInt(dst, `,"behind":`, w.Behind)
	}
	dst = optTime(dst, `,"until":`, w.UntilMs)
	return append(dst, '}')
}

func (o *object) waiting() *Waiting {
	raw := o.given(taskWaiting)
	if raw == nil {
		return nil
	}
	e := object{names: waitingNames}
	if problem := e.scanAlone(raw); problem != "" {
		o.refuse(CodeInvalidBody, taskWaiting, problem)
		return nil
	}
	w := &Waiting{
		Reason:  e.text(waitingReason, &needTextRule),
		Behind:  e.integer(waitingBehind, &anyIntegerRule),
		UntilMs: e.timeMs(waitingUntil, CodeInvalidBody), BehindKnown: e.given(waitingBehind) != nil,
	}
	if e.err != nil {
		o.err = e.err
	}
	return w
}
