package wire

import (
	"errors"
	"net/url"
)

// A task with a webhook, or one whose outcome an endpoint of its tenant wants, makes callbacks
// when it ends: tasks of CallbackQueue, in the same batch. A worker within the server posts
// them.

const (
	// CallbackQueue is the queue of the callbacks of a tenant.
	CallbackQueue = systemPrefix + "webhook"
	// CallbackAttempts is how often a callback is posted before it is a dead letter.
	CallbackAttempts = 10
	// MaxWebhookBytes bounds the URL of a webhook.
	MaxWebhookBytes = 2 << 10
	// MaxCallbackResultBytes bounds the result that is posted itself, not as its URL.
	MaxCallbackResultBytes = 256 << 10
	// HistoryCallback is the cause of the history line that names the callback of a task.
	HistoryCallback = "callback"
)

// systemSettings are those of the queues of the server until somebody pauses one. The worker
// says when each attempt comes, at most a day later.
var systemSettings = QueueSettings{
	Spread: true, MaxAttempts: CallbackAttempts, LeaseSeconds: 30, Backoff: Backoff{BaseSeconds: 5, MaxSeconds: 86_400},
	RetentionSeconds: 86_400, DLQRetentionSeconds: 7 * 86_400,
}

// FirstSettings are the settings of a queue that nobody has set.
func FirstSettings(command string) QueueSettings {
	if command == CallbackQueue {
		return systemSettings
	}
	return QueueSettings{}
}

var webhookRule = textRule{code: CodeInvalidWebhook, high: MaxWebhookBytes, exact: true, problem: webhookProblem}

// webhookProblem says why a text is no URL of a webhook; it continues a sentence that begins
// with where the URL stood. Whether the host may be called is seen when it is called.
func webhookProblem(text string) string {
	if problem := TextProblem(text); problem != "" {
		return problem
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "must be an http or https URL with a host, such as https://example.com/done"
	}
	if _, ok := ParseHost(u.Host); !ok {
		return "must have a host name of letters, digits, hyphens and dots, or an IP address, and a port up to 65535 if any"
	}
	if u.User != nil {
		return "must have no user name and no password: what is posted is signed instead"
	}
	return ""
}

// Callback is the payload of a task of CallbackQueue.
type Callback struct {
	// ID is the same for all attempts: the id of the task that ended and the number of the
	// event that ended it.
	ID string
	// URL is where it goes; empty for an endpoint of the tenant, which Endpoint names and
	// whose URL is that of the time at which it is posted.
	URL      string
	Endpoint string
	// Body is what is posted, byte for byte.
	Body []byte
}

func (k *Callback) members(c *coder) {
	c.text(`,"id":`, &k.ID, &needTextRule)
	c.optText(`,"url":`, &k.URL, &anyTextRule)
	c.optText(`,"endpoint":`, &k.Endpoint, &anyTextRule)
	c.optRaw(`,"body":`, &k.Body)
}

var callbackShape = shapeOf(new([]string), new(Callback).members)

// AppendCallback appends the payload.
func AppendCallback(dst []byte, k *Callback) []byte {
	c := writing(&dst)
	k.members(&c)
	return c.done()
}

// ParseCallback reads what AppendCallback wrote. The body aliases data.
func ParseCallback(data []byte) (*Callback, error) {
	k, err := parseAnswer("callback", data, callbackShape, (*Callback).members)
	if err == nil && k.URL+k.Endpoint == "" {
		return nil, errors.New("read callback: it goes nowhere")
	}
	return k, err
}

// Outcome is the body of a callback: the members of the original HTTP API.
type Outcome struct {
	Command string
	ResultRecord
	// ResultURL is where the result is that is too large for a callback.
	ResultURL string
}

// AppendOutcome appends the body.
func AppendOutcome(dst []byte, o *Outcome) []byte {
	c := writing(&dst)
	c.text(`,"eventType":`, &o.Command, &needTextRule)
	o.ResultRecord.members(&c)
	c.optText(`,"resultUrl":`, &o.ResultURL, &anyTextRule)
	return c.done()
}
