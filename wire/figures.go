package wire

// QueueFigures are the figures of one queue of one tenant, as an admin sees them.
type QueueFigures struct {
	Command  string
	TenantID string
	Ready    int64
	// Limited are the tasks that would be ready, did their concurrency key not hold them back.
	Limited    int64
	Delayed    int64
	InProgress int64
	// Dead is the number of dead letters.
	Dead int64
	// Ended is the number of tasks that have ended and are not dead letters. Only the
	// server has it: it is in no answer.
	Ended int64
	// DeadBy are the numbers of dead letters by cause.
	DeadBy [DeadKinds]int64
	Paused bool
	// OldestReadyAtMs is when the first ready task became ready, in Unix milliseconds; 0
	// if none is ready.
	OldestReadyAtMs int64
	// Deleting: the queue accepts no task, and is removed when it has none left.
	Deleting bool
	// Unknown: the queue has no task and no settings.
	Unknown bool
	// Settings are those of the queue; a zero field means the default of the server.
	Settings QueueSettings
	// Effective are Settings with the defaults of the server in place of zero fields. A
	// time that is zero has no end. All of it is zero in lists of queues.
	Effective QueueSettings
}

func (q *QueueFigures) members(c *coder) {
	c.text(`,"command":`, &q.Command, &needTextRule)
	c.text(`,"tenantId":`, &q.TenantID, &anyTextRule)
	integer(c, `,"ready":`, &q.Ready, true, &anyIntegerRule)
	optInteger(c, `,"limited":`, &q.Limited, &anyIntegerRule)
	integer(c, `,"delayed":`, &q.Delayed, true, &anyIntegerRule)
	integer(c, `,"inProgress":`, &q.InProgress, true, &anyIntegerRule)
	integer(c, `,"dlq":`, &q.Dead, true, &anyIntegerRule)
	if by := (*deadBy)(&q.DeadBy); c.in != nil {
		c.inner(`,"dlqCauses":`, CodeInvalidBody, deadByShape, by.members)
	} else if *by != (deadBy{}) {
		at := c.open(`,"dlqCauses":`)
		by.members(c)
		c.close(at)
	}
	c.boolean(`,"paused":`, &q.Paused, true)
	c.optTime(`,"oldestReadyAt":`, &q.OldestReadyAtMs, &anyTimeRule)
	c.boolean(`,"deleting":`, &q.Deleting, q.Deleting)
	c.boolean(`,"unknown":`, &q.Unknown, q.Unknown)
	q.Settings.members(c)
	if c.in != nil {
		c.inner(`,"effective":`, CodeInvalidBody, settingsShape, q.Effective.members)
	} else if q.Effective != (QueueSettings{}) {
		at := c.open(`,"effective":`)
		q.Effective.members(c)
		c.close(at)
	}
}

// deadBy are numbers of dead letters by cause.
type deadBy [DeadKinds]int64

func (by *deadBy) members(c *coder) {
	optInteger(c, `,"exhausted":`, &by[DeadExhausted], &anyIntegerRule)
	optInteger(c, `,"released_too_often":`, &by[DeadReleased], &anyIntegerRule)
	optInteger(c, `,"failed":`, &by[DeadFailed], &anyIntegerRule)
}

var (
	figuresShape = shapeOf(new([]string), new(QueueFigures).members)
	deadByShape  = shapeOf(new([]string), new(deadBy).members)
)

// AppendQueueFigures appends the figures as a JSON object.
func AppendQueueFigures(dst []byte, q *QueueFigures) []byte {
	c := writing(&dst)
	q.members(&c)
	return c.done()
}

// The states of a session, as an admin sees them.
const (
	SessionLive = "live"
	// SessionDraining takes no new tasks and ends those that it has.
	SessionDraining = "draining"
	// SessionGrace has lost its socket and can still be resumed.
	SessionGrace = "grace"
)

// SessionFigures describe one session, as an admin sees it. Times are Unix milliseconds.
type SessionFigures struct {
	ID       SessionID
	WorkerID string
	Subject  string
	Commands []string
	// Window is the largest number of tasks that the session takes at a time.
	Window int
	// Held is the number of tasks that it has.
	Held          int
	State         string
	ConnectedAtMs int64
	// LastSeenAtMs is when the last byte of its client came.
	LastSeenAtMs int64
	// GraceUntilMs is until when a session in its grace can be resumed.
	GraceUntilMs int64
	// RoundTripMs is the time from the last ping to its pong, rounded up; 0 until then.
	RoundTripMs int64
	// Completed counts the tasks that it ended COMPLETED since it connected, Failed those that
	// it ended FAILED or gave back by nack.
	Completed, Failed int64
}

func (f *SessionFigures) members(c *coder) {
	c.sessionID(`,"sessionId":`, &f.ID)
	c.optText(`,"workerId":`, &f.WorkerID, &anyTextRule)
	c.text(`,"subject":`, &f.Subject, &anyTextRule)
	c.texts(`,"commands":`, &f.Commands)
	integer(c, `,"window":`, &f.Window, true, &anyIntegerRule)
	integer(c, `,"held":`, &f.Held, true, &anyIntegerRule)
	c.text(`,"state":`, &f.State, &needTextRule)
	c.time(`,"connectedAt":`, &f.ConnectedAtMs, &anyTimeRule)
	c.time(`,"lastSeenAt":`, &f.LastSeenAtMs, &anyTimeRule)
	c.optTime(`,"graceUntil":`, &f.GraceUntilMs, &anyTimeRule)
	optInteger(c, `,"roundTripMs":`, &f.RoundTripMs, &anyIntegerRule)
	optInteger(c, `,"completed":`, &f.Completed, &anyIntegerRule)
	optInteger(c, `,"failed":`, &f.Failed, &anyIntegerRule)
}

var sessionShape = shapeOf(new([]string), new(SessionFigures).members)

// AppendSessionFigures appends the figures as a JSON object.
func AppendSessionFigures(dst []byte, f *SessionFigures) []byte {
	c := writing(&dst)
	f.members(&c)
	return c.done()
}
