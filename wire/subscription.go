package wire

import "fmt"

// Subscription is a URL of a tenant that is told while queues have tasks for which no worker has
// room.
type Subscription struct {
	CallbackURL string
	// EventTypes are commands, prefixes such as "build.*", or AllCommands.
	EventTypes []string
	// DeliveryMode is one of the words below, GroupID the name of the group.
	DeliveryMode, GroupID string
	// MinIntervalSeconds is the least time between two calls about one queue.
	MinIntervalSeconds int
	// TTLSeconds is how long it stays without a heartbeat, which is until ExpiresAtMs, in Unix
	// milliseconds.
	TTLSeconds  int
	ExpiresAtMs int64
}

// Who of the subscribers of a queue is told: each, one of each group in turn, or one that the name
// of the queue chooses.
const (
	DeliverFanout = "fanout"
	DeliverGroup  = "group"
	DeliverHash   = "hash"
)

const (
	// MaxSubscriptions is how many a tenant has.
	MaxSubscriptions = 256

	// DefaultSubscriptionSeconds is how long one stays without a heartbeat that does not say.
	DefaultSubscriptionSeconds = 300
	minSubscriptionSeconds     = 10
	maxSubscriptionSeconds     = 86_400
	// DefaultIntervalSeconds is MinIntervalSeconds if that is 0.
	DefaultIntervalSeconds = 30
)

var (
	subscriptionTTLRule  = integerRule{code: CodeInvalidArgument, low: minSubscriptionSeconds, high: maxSubscriptionSeconds}
	intervalRule         = integerRule{code: CodeInvalidArgument, low: 1, high: maxSubscriptionSeconds}
	subscriptionModeRule = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, problem: func(text string) string {
		if text == DeliverFanout || text == DeliverGroup || text == DeliverHash {
			return ""
		}
		return fmt.Sprintf("must be %s, %s or %s", DeliverFanout, DeliverGroup, DeliverHash)
	}}
	groupRule = textRule{code: CodeInvalidArgument, high: MaxEndpointBytes, problem: commandProblem}
)

func (s *Subscription) members(c *coder) {
	c.text(`,"callbackUrl":`, &s.CallbackURL, &endpointURLRule)
	c.words(`,"eventTypes":`, &s.EventTypes, (*object).patterns)
	c.optText(`,"deliveryMode":`, &s.DeliveryMode, &subscriptionModeRule)
	c.optText(`,"groupId":`, &s.GroupID, &groupRule)
	optInteger(c, `,"minIntervalSeconds":`, &s.MinIntervalSeconds, &intervalRule)
	optInteger(c, `,"ttlSeconds":`, &s.TTLSeconds, &subscriptionTTLRule)
	c.optTime(`,"expiresAt":`, &s.ExpiresAtMs, &anyTimeRule)
	if c.in != nil && !c.in.answer && (s.DeliveryMode == DeliverGroup) != (s.GroupID != "") {
		c.in.refuseNamed(CodeInvalidArgument, "groupId", "belongs to the deliveryMode "+DeliverGroup+", which needs it")
	}
}

// renewal is the body of POST /workers/subscriptions/{id}/heartbeat.
type renewal struct{ seconds int }

func (r *renewal) members(c *coder) {
	optInteger(c, `,"ttlSeconds":`, &r.seconds, &subscriptionTTLRule)
}

var (
	subscriptionShape = shapeOf(new([]string), new(Subscription).members)
	renewalShape      = shapeOf(new([]string), new(renewal).members)
	subscriptionBits  = subscriptionShape.without("expiresAt")
)

// ParseSubscription reads what AppendSubscription wrote. Unknown members are passed over.
func ParseSubscription(data []byte) (*Subscription, error) {
	return parseAnswer("subscription", data, subscriptionShape, (*Subscription).members)
}

// AppendSubscription appends the subscription, or the body of POST /workers/subscriptions.
func AppendSubscription(dst []byte, s *Subscription) []byte {
	c := writing(&dst)
	s.members(&c)
	return c.done()
}

// ParseSubscribeRequest reads the body of POST /workers/subscriptions.
func ParseSubscribeRequest(body []byte) (*Subscription, *Error) {
	o, s := subscriptionShape.object(), &Subscription{}
	o.scanBody(body, subscriptionBits)
	s.members(&coder{in: &o, shape: subscriptionShape})
	if o.err != nil {
		return nil, o.err
	}
	return s, nil
}

// ParseRenewal reads the body of POST /workers/subscriptions/{id}/heartbeat: how long the
// subscription stays, 0 for as long as before.
func ParseRenewal(body []byte) (ttlSeconds int, refusal *Error) {
	o, r := renewalShape.object(), renewal{}
	o.scanBody(orEmptyObject(body), renewalShape.bits)
	r.members(&coder{in: &o, shape: renewalShape})
	return r.seconds, o.err
}

// SubscriptionFigures are a subscription and how many calls to it in a row have failed.
type SubscriptionFigures struct {
	ID string
	Subscription
	Failures int
}

func (f *SubscriptionFigures) members(c *coder) {
	c.text(`,"subscriptionId":`, &f.ID, &needTextRule)
	f.Subscription.members(c)
	optInteger(c, `,"failures":`, &f.Failures, &anyIntegerRule)
}

// AppendSubscriptionFigures appends the figures as a JSON object.
func AppendSubscriptionFigures(dst []byte, f *SubscriptionFigures) []byte {
	c := writing(&dst)
	f.members(&c)
	return c.done()
}

// Notification is what a subscriber is told about a queue.
type Notification struct {
	ID, Command string
	Ready       int64
	// OldestReadyAtMs is since when a task waits, ClaimURL where tasks are claimed.
	OldestReadyAtMs int64
	ClaimURL        string
	SentAtMs        int64
}

// AppendNotification appends the body of the call, with the members of the original HTTP API.
func AppendNotification(dst []byte, n *Notification) []byte {
	dst = AppendQuoted(append(dst, `{"eventType":`...), n.Command)
	dst = fmt.Appendf(dst, `,"available":true,"queueDepth":%d`, n.Ready)
	if n.OldestReadyAtMs != 0 {
		dst = AppendTimeMs(append(dst, `,"oldestReadyAt":`...), n.OldestReadyAtMs)
	}
	dst = AppendQuoted(append(dst, `,"claimUrl":`...), n.ClaimURL)
	dst = AppendTimeMs(append(dst, `,"sentAt":`...), n.SentAtMs)
	dst = AppendQuoted(append(dst, `,"notificationId":`...), n.ID)
	return append(dst, '}')
}
