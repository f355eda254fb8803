package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
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
)

// The members of the settings of a queue, in figures and in the body that sets
// them.
const (
	settingSpread = iota
	settingMaxAttempts
	settingLeaseSeconds
	settingBackoff
	settingRetention
	settingDLQRetention
	settingTimeout
	settingTTL
	// settingOrdered is refused: what it asked for is the default.
	settingOrdered
)

var settingNames = []string{
	settingSpread: "spread", settingMaxAttempts: "maxAttempts", settingLeaseSeconds: "leaseSeconds",
	settingBackoff: "backoff", settingRetention: "retentionSeconds", settingDLQRetention: "dlqRetentionSeconds",
	settingTimeout: "timeoutSeconds", settingTTL: "ttlSeconds", settingOrdered: "ordered",
}

const (
	backoffPolicy = iota
	backoffBase
	backoffMax
)

var backoffNames = []string{backoffPolicy: "policy", backoffBase: "baseSeconds", backoffMax: "maxSeconds"}

var (
	queueAttemptsRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxAttemptsLimit}
	queueLeaseRule    = integerRule{code: CodeInvalidArgument, low: 1, high: MaxLeaseSeconds}
	queueTTLRule      = integerRule{code: CodeInvalidArgument, low: 1, high: MaxDelaySeconds}
	backoffRule       = integerRule{code: CodeInvalidArgument, low: 1, high: MaxBackoffSeconds}
	retentionRule     = integerRule{code: CodeInvalidArgument, low: 1, high: MaxRetentionSeconds}
)

// ParseQueueSettings reads the body of PUT /admin/queues/{command}. A member that is absent
// or null gets the default of the server.
func ParseQueueSettings(body []byte) (*QueueSettings, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := object{names: settingNames}
	o.scanBody(body, math.MaxUint64)
	if o.given(settingOrdered) != nil {
		o.refuse(CodeInvalidArgument, settingOrdered,
			"is no setting any more: a queue has one order unless its setting spread is true; leave ordered out")
	}
	s := o.queueSettings()
	if o.err != nil {
		return nil, o.err
	}
	return &s, nil
}

func (o *object) queueSettings() QueueSettings {
	s := QueueSettings{
		Spread:              o.trueOrFalse(settingSpread),
		MaxAttempts:         int(o.integer(settingMaxAttempts, &queueAttemptsRule)),
		LeaseSeconds:        int(o.integer(settingLeaseSeconds, &queueLeaseRule)),
		TimeoutSeconds:      o.integer(settingTimeout, &timeoutRule),
		TTLSeconds:          o.integer(settingTTL, &queueTTLRule),
		RetentionSeconds:    o.integer(settingRetention, &retentionRule),
		DLQRetentionSeconds: o.integer(settingDLQRetention, &retentionRule),
	}
	raw := o.given(settingBackoff)
	if raw == nil {
		return s
	}
	inner := object{names: backoffNames}
	if problem := inner.scanAlone(raw); problem != "" {
		o.refuse(CodeInvalidArgument, settingBackoff, problem)
		return s
	}
	s.Backoff = inner.backoff()
	inner.checkMembers(math.MaxUint64)
	inner.checkPolicy(s.Backoff.Policy)
	inner.checkBase(&s.Backoff)
	if inner.err != nil && o.err == nil {
		o.err = Refuse(inner.err.Code, "backoff."+inner.err.Sentence)
	}
	return s
}

func (o *object) backoff() Backoff {
	return Backoff{
		Policy:      o.text(backoffPolicy, &anyTextRule),
		BaseSeconds: o.integer(backoffBase, &backoffRule),
		MaxSeconds:  o.integer(backoffMax, &backoffRule),
	}
}

func (o *object) checkPolicy(policy string) {
	switch policy {
	case "", BackoffFixed, BackoffLinear, BackoffExponential, BackoffEqualJitter, BackoffFullJitter:
	default:
		o.refuse(CodeInvalidArgument, backoffPolicy, fmt.Sprintf("must be one of %s, %s, %s, %s, %s",
			BackoffFixed, BackoffLinear, BackoffExponential, BackoffEqualJitter, BackoffFullJitter))
	}
}

// checkBase refuses a first wait above the longest one, which would never be waited.
func (o *object) checkBase(b *Backoff) {
	base, most := cmp.Or(b.BaseSeconds, DefaultBackoffBaseSeconds), cmp.Or(b.MaxSeconds, DefaultBackoffMaxSeconds)
	if base > most {
		o.refuse(CodeInvalidArgument, backoffBase, fmt.Sprintf("(%d) must not be above maxSeconds (%d); they are %d and %d if left out",
			base, most, DefaultBackoffBaseSeconds, DefaultBackoffMaxSeconds))
	}
}

// trueOrFalse reads a member that is a boolean; absent is false.
func (o *object) trueOrFalse(field int) bool {
	raw := o.given(field)
	if raw != nil && string(raw) != "true" && string(raw) != "false" {
		o.refuse(CodeInvalidArgument, field, "must be true or false, got "+describe(raw))
	}
	return string(raw) == "true"
}

// AppendQueueSettings appends the settings as the JSON body that sets them.
func AppendQueueSettings(dst []byte, s *QueueSettings) []byte {
	start := len(dst)
	dst = append(appendSettingMembers(dst, s), '}')
	if dst[start] == ',' {
		dst[start] = '{'
		return dst
	}
	return append(dst[:start], "{}"...)
}

// appendSettingMembers appends what is set, a comma before each member.
func appendSettingMembers(dst []byte, s *QueueSettings) []byte {
	if s.Spread {
		dst = append(dst, `,"spread":true`...)
	}
	dst = optInt(dst, `,"maxAttempts":`, int64(s.MaxAttempts))
	dst = optInt(dst, `,"leaseSeconds":`, int64(s.LeaseSeconds))
	dst = optInt(dst, `,"timeoutSeconds":`, s.TimeoutSeconds)
	dst = optInt(dst, `,"ttlSeconds":`, s.TTLSeconds)
	if s.Backoff != (Backoff{}) {
		at := len(dst) + len(`,"backoff":`)
		dst = append(dst, `,"backoff":`...)
		dst = optText(dst, `,"policy":`, s.Backoff.Policy)
		dst = optInt(dst, `,"baseSeconds":`, s.Backoff.BaseSeconds)
		dst = optInt(dst, `,"maxSeconds":`, s.Backoff.MaxSeconds)
		dst[at] = '{'
		dst = append(dst, '}')
	}
	dst = optInt(dst, `,"retentionSeconds":`, s.RetentionSeconds)
	return optInt(dst, `,"dlqRetentionSeconds":`, s.DLQRetentionSeconds)
}
