package wire

import (
	"cmp"
	"fmt"
)

// QueueSettings are the settings of one queue. A zero field means the default of the
// server.
type QueueSettings struct {
	// Spread lets tasks without an idempotency key lie on every shard. The queue then has
	// one order on each shard, and not one for all its tasks.
	Spread bool
	// MaxAttempts is for tasks that state none.
	MaxAttempts int
	// LeaseSeconds is for workers that state none.
	LeaseSeconds int
	// TimeoutSeconds is how long one delivery may run of a task that states none.
	TimeoutSeconds int64
	// TTLSeconds is the time after which a task expires that states none; 0 is never.
	TTLSeconds int64
	Backoff    Backoff
	// RetentionSeconds is how long ended tasks stay.
	RetentionSeconds int64
	// DLQRetentionSeconds is how long dead letters stay.
	DLQRetentionSeconds int64
	// MaxInProgress is how many tasks of the queue may be in progress at once,
	// StartsPerSecond how many deliveries may begin in any second; 0 is no limit.
	MaxInProgress   int
	StartsPerSecond int
	PerKey          PerKey
	Target          Target
}

// Target is a URL to which the server posts the tasks of a queue. Window is how many it has at
// once; 0 is DefaultTargetWindow. Without a URL there is none.
type Target struct {
	URL    string
	Window int
}

// InForce is the target with what holds for what is not set.
func (t Target) InForce() Target {
	if t.URL != "" {
		t.Window = cmp.Or(t.Window, DefaultTargetWindow)
	}
	return t
}

// PerKey are the limits of each concurrency key of a queue; 0 is no limit. In a spread queue
// they hold on each shard.
type PerKey struct {
	// InProgress is how many tasks of one key may be in progress at once, StartsPerSecond how
	// many of their deliveries may begin in any second.
	InProgress      int
	StartsPerSecond int
}

// Backoff is how long a failed task waits before it is tried again.
type Backoff struct {
	// Policy is one of the policies below.
	Policy      string
	BaseSeconds int64
	MaxSeconds  int64
}

// The policies of a backoff. After attempt n the delay is the base (fixed), n times the
// base (linear), or the base doubled n−1 times (exponential), at most MaxSeconds. With equal
// jitter it is drawn between half of that and all of it, with full jitter between 0 and all.
const (
	BackoffFixed       = "fixed"
	BackoffLinear      = "linear"
	BackoffExponential = "exponential"
	BackoffEqualJitter = "exp_equal_jitter"
	BackoffFullJitter  = "exp_full_jitter"
)

// Limits of the settings of a queue, and what holds without them.
const (
	DefaultBackoffBaseSeconds = 5
	DefaultBackoffMaxSeconds  = 900
	// MaxBackoffSeconds bounds base and maximum of a backoff: a day.
	MaxBackoffSeconds = 86_400
	// MaxRetentionSeconds bounds how long ended tasks stay: ten years.
	MaxRetentionSeconds = 10 * 365 * 86_400
	// MaxQueueLimit bounds the limits of a queue and of its keys.
	MaxQueueLimit = 1_000_000
	// MaxTargetWindow bounds how many tasks a target has at once.
	DefaultTargetWindow = 8
	MaxTargetWindow     = 256
)

var (
	queueAttemptsRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxAttemptsLimit}
	queueLeaseRule    = integerRule{code: CodeInvalidArgument, low: 1, high: MaxLeaseSeconds}
	queueTTLRule      = integerRule{code: CodeInvalidArgument, low: 1, high: MaxDelaySeconds}
	backoffRule       = integerRule{code: CodeInvalidArgument, low: 1, high: MaxBackoffSeconds}
	queueLimitRule    = integerRule{code: CodeInvalidArgument, low: 1, high: MaxQueueLimit}
	targetWindowRule  = integerRule{code: CodeInvalidArgument, low: 1, high: MaxTargetWindow}
	targetURLRule     = textRule{code: CodeInvalidArgument, high: MaxWebhookBytes, exact: true, required: true, problem: webhookProblem}
	retentionRule     = integerRule{code: CodeInvalidArgument, low: 1, high: MaxRetentionSeconds}
)

func (s *QueueSettings) members(c *coder) {
	c.boolean(`,"spread":`, &s.Spread, s.Spread)
	optInteger(c, `,"maxAttempts":`, &s.MaxAttempts, &queueAttemptsRule)
	optInteger(c, `,"leaseSeconds":`, &s.LeaseSeconds, &queueLeaseRule)
	optInteger(c, `,"timeoutSeconds":`, &s.TimeoutSeconds, &timeoutRule)
	optInteger(c, `,"ttlSeconds":`, &s.TTLSeconds, &queueTTLRule)
	if c.in != nil {
		c.inner(`,"backoff":`, CodeInvalidArgument, backoffShape, s.Backoff.members)
	} else if s.Backoff != (Backoff{}) {
		at := c.open(`,"backoff":`)
		s.Backoff.members(c)
		c.close(at)
	}
	optInteger(c, `,"retentionSeconds":`, &s.RetentionSeconds, &retentionRule)
	optInteger(c, `,"dlqRetentionSeconds":`, &s.DLQRetentionSeconds, &retentionRule)
	optInteger(c, `,"maxInProgress":`, &s.MaxInProgress, &queueLimitRule)
	optInteger(c, `,"startsPerSecond":`, &s.StartsPerSecond, &queueLimitRule)
	if c.in != nil {
		c.inner(`,"perKey":`, CodeInvalidArgument, perKeyShape, s.PerKey.members)
	} else if s.PerKey != (PerKey{}) {
		at := c.open(`,"perKey":`)
		s.PerKey.members(c)
		c.close(at)
	}
	if c.in != nil {
		c.inner(`,"target":`, CodeInvalidArgument, targetShape, s.Target.members)
	} else if s.Target != (Target{}) {
		at := c.open(`,"target":`)
		s.Target.members(c)
		c.close(at)
	}
	if c.in == nil {
		return
	}
	if c.field(`,"ordered":`); c.given() && !c.in.answer {
		c.in.refuse(CodeInvalidArgument, c.last(),
			"is no setting any more: a queue has one order unless its setting spread is true; leave ordered out")
	}
}

func (k *PerKey) members(c *coder) {
	optInteger(c, `,"inProgress":`, &k.InProgress, &queueLimitRule)
	optInteger(c, `,"startsPerSecond":`, &k.StartsPerSecond, &queueLimitRule)
}

func (t *Target) members(c *coder) {
	c.text(`,"url":`, &t.URL, &targetURLRule)
	optInteger(c, `,"window":`, &t.Window, &targetWindowRule)
}

func (b *Backoff) members(c *coder) {
	c.optText(`,"policy":`, &b.Policy, &anyTextRule)
	optInteger(c, `,"baseSeconds":`, &b.BaseSeconds, &backoffRule)
	optInteger(c, `,"maxSeconds":`, &b.MaxSeconds, &backoffRule)
	if c.in != nil && !c.in.answer {
		c.in.checkPolicy(b.Policy)
		c.in.checkBase(b)
	}
}

var (
	settingsShape = shapeOf(new([]string), new(QueueSettings).members)
	backoffShape  = shapeOf(new([]string), new(Backoff).members)
	perKeyShape   = shapeOf(new([]string), new(PerKey).members)
	targetShape   = shapeOf(new([]string), new(Target).members)
)

// ParseQueueSettings reads the body of PUT /admin/queues/{command}. A member that is absent
// or null gets the default of the server.
func ParseQueueSettings(body []byte) (*QueueSettings, *Error) {
	o, s := settingsShape.object(), &QueueSettings{}
	o.scanBody(orEmptyObject(body), settingsShape.bits)
	s.members(&coder{in: &o, shape: settingsShape})
	if o.err != nil {
		return nil, o.err
	}
	return s, nil
}

func (o *object) checkPolicy(policy string) {
	switch policy {
	case "", BackoffFixed, BackoffLinear, BackoffExponential, BackoffEqualJitter, BackoffFullJitter:
	default:
		o.refuseNamed(CodeInvalidArgument, "policy", fmt.Sprintf("must be one of %s, %s, %s, %s, %s",
			BackoffFixed, BackoffLinear, BackoffExponential, BackoffEqualJitter, BackoffFullJitter))
	}
}

// checkBase refuses a first wait above the longest one, which would never be waited.
func (o *object) checkBase(b *Backoff) {
	base, most := cmp.Or(b.BaseSeconds, DefaultBackoffBaseSeconds), cmp.Or(b.MaxSeconds, DefaultBackoffMaxSeconds)
	if base > most {
		o.refuseNamed(CodeInvalidArgument, "baseSeconds", fmt.Sprintf("(%d) must not be above maxSeconds (%d); they are %d and %d if left out",
			base, most, DefaultBackoffBaseSeconds, DefaultBackoffMaxSeconds))
	}
}

// AppendQueueSettings appends the settings as the JSON body that sets them.
func AppendQueueSettings(dst []byte, s *QueueSettings) []byte {
	c := writing(&dst)
	s.members(&c)
	return c.done()
}
