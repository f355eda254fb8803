package wire

// Waiting says why a task is not with a worker.
type Waiting struct {
	// Reason is one of the constants below.
	Reason string
	// Behind is the number of ready tasks that come before it.
	Behind int64
	// BehindKnown: Behind is known.
	BehindKnown bool
	// Limit is the setting of the queue that holds it back, Used and Of are how far it
	// is used; starts in a second have no Used.
	Limit string
	// Key is the concurrency key whose limit it is; empty for a limit of the queue.
	Key  string
	Used int64
	Of   int64
	// UntilMs is when a delayed task becomes ready, or when its target is tried again, in Unix
	// milliseconds. Problem is why the target gets none.
	UntilMs int64
	Problem string
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
	WaitingLimit       = "limit"
	// WaitingTarget is a reason that the core does not know: the target of the queue fails.
	WaitingTarget = "target"
)

// The limits of a queue.
const (
	LimitInProgress = "maxInProgress"
	LimitStarts     = "startsPerSecond"
	// The limits of a concurrency key.
	LimitKeyInProgress = "perKey.inProgress"
	LimitKeyStarts     = "perKey.startsPerSecond"
)

func (w *Waiting) members(c *coder) {
	c.text(`,"reason":`, &w.Reason, &needTextRule)
	known := integer(c, `,"behind":`, &w.Behind, w.BehindKnown, &anyIntegerRule)
	if c.in != nil {
		w.BehindKnown = known
	}
	c.optText(`,"limit":`, &w.Limit, &anyTextRule)
	c.optText(`,"key":`, &w.Key, &anyTextRule)
	optInteger(c, `,"used":`, &w.Used, &anyIntegerRule)
	optInteger(c, `,"of":`, &w.Of, &anyIntegerRule)
	c.optTime(`,"until":`, &w.UntilMs, &anyTimeRule)
	c.optText(`,"problem":`, &w.Problem, &anyTextRule)
}

var waitingShape = shapeOf(new([]string), new(Waiting).members)

func (c *coder) waiting(lead string, w **Waiting) {
	if c.in != nil {
		read := &Waiting{}
		if c.inner(lead, CodeInvalidBody, waitingShape, read.members) {
			*w = read
		}
	} else if *w != nil {
		at := c.open(lead)
		(*w).members(c)
		c.close(at)
	}
}
