package wire

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// Endpoint is a URL of a tenant that gets the outcomes of its tasks.
type Endpoint struct {
	URL string
	// Commands are commands and prefixes such as "build.*", Statuses those of ended tasks.
	// The endpoint gets the outcomes of tasks that have one of each; an empty list is any.
	Commands, Statuses []string
	// State is one of the words below, Reason why the server disabled the endpoint.
	State, Reason string
	// Secret signs what is posted. OldSecret, which it has replaced, signs as well until
	// OldSecretUntilMs, in Unix milliseconds.
	Secret, OldSecret string
	OldSecretUntilMs  int64
}

// The states of an endpoint. What a disabled one would get waits.
const (
	EndpointEnabled  = "enabled"
	EndpointDisabled = "disabled"
)

const (
	// MaxEndpoints is how many endpoints a tenant has.
	MaxEndpoints = 16
	// MaxEndpointBytes bounds the name of an endpoint.
	MaxEndpointBytes = 64
	// RotationMs is how long a secret signs beside the one that has replaced it.
	RotationMs = 86_400_000
	// EndpointLabel is the name of the label that callbacks to an endpoint have.
	EndpointLabel = "endpoint"
	// SecretPrefix begins every secret; base64 of its key follows.
	SecretPrefix = "whsec_"
	// The key of a secret has so many bytes, as Standard Webhooks recommends.
	minSecretBytes = 24
	maxSecretBytes = 64
)

var (
	endpointURLRule   = textRule{code: CodeInvalidWebhook, high: MaxWebhookBytes, exact: true, required: true, problem: webhookProblem}
	endpointStateRule = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, problem: func(text string) string {
		if text == EndpointEnabled || text == EndpointDisabled {
			return ""
		}
		return "must be " + EndpointEnabled + " or " + EndpointDisabled
	}}
	secretRule = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, problem: secretProblem}
)

// secretProblem does not show the secret.
func secretProblem(text string) string {
	key, is := strings.CutPrefix(text, SecretPrefix)
	if bytes, err := base64.StdEncoding.DecodeString(key); !is || err != nil || len(bytes) < minSecretBytes || len(bytes) > maxSecretBytes {
		return fmt.Sprintf("must be %s and base64 of %d to %d bytes", SecretPrefix, minSecretBytes, maxSecretBytes)
	}
	return ""
}

// EndpointProblem says why a text is no name of an endpoint; it continues a sentence that
// begins with what the name is of.
func EndpointProblem(name string) string {
	switch {
	case len(name) > MaxEndpointBytes:
		return fmt.Sprintf("must have 1 to %d bytes, got %d", MaxEndpointBytes, len(name))
	case name == "secret":
		return "must not be secret, which is the path of the secret of the tenant"
	}
	return commandProblem(name)
}

func (e *Endpoint) members(c *coder) {
	c.text(`,"url":`, &e.URL, &endpointURLRule)
	c.words(`,"commands":`, &e.Commands, (*object).patterns)
	c.words(`,"statuses":`, &e.Statuses, (*object).endings)
	c.optText(`,"state":`, &e.State, &endpointStateRule)
	c.optText(`,"reason":`, &e.Reason, &anyTextRule)
	c.optText(`,"secret":`, &e.Secret, &secretRule)
	c.optText(`,"oldSecret":`, &e.OldSecret, &secretRule)
	c.optTime(`,"oldSecretUntil":`, &e.OldSecretUntilMs, &anyTimeRule)
}

// words is a list of texts with rules of its own; an empty one is left out.
func (c *coder) words(lead string, words *[]string, read func(o *object, field int) []string) {
	if c.in != nil {
		*words = read(c.in, c.field(lead))
	} else if len(*words) > 0 {
		*c.out = appendTexts(*c.out, lead, *words)
	}
}

// endings reads a list of statuses of ended tasks.
func (o *object) endings(field int) []string {
	list := o.words(field, len(endings))
	for i, word := range list {
		if !slices.Contains(endings, word) {
			o.refuse(CodeInvalidArgument, field, fmt.Sprintf("must hold only %s, element %d is none", strings.Join(endings, ", "), i))
			return nil
		}
	}
	return list
}

var endings = []string{string(StatusCompleted), string(StatusFailed), string(StatusCancelled)}

var (
	endpointShape       = shapeOf(new([]string), new(Endpoint).members)
	endpointChangeShape = shapeOf(new([]string), new(EndpointChange).members)
	endpointTestShape   = shapeOf(new([]string), new(EndpointTest).members)
	endpointsShape      = shapeOf(new([]string), new(EndpointFigures).members)
	rotationShape       = shapeOf(new([]string), new(rotation).members)
	endpointChangeBits  = endpointChangeShape.without("reason", "oldSecret", "oldSecretUntil")
)

// ParseEndpoint reads what AppendEndpoint wrote. Unknown members are passed over.
func ParseEndpoint(data []byte) (*Endpoint, error) {
	return parseAnswer("endpoint", data, endpointShape, (*Endpoint).members)
}

// AppendEndpoint appends the endpoint with its secrets.
func AppendEndpoint(dst []byte, e *Endpoint) []byte {
	c := writing(&dst)
	e.members(&c)
	return c.done()
}

// Wants reports whether the endpoint gets the outcome of a task of the command that ended so.
func (e *Endpoint) Wants(command string, status Status) bool {
	return (len(e.Commands) == 0 || CommandIsAmong(e.Commands, command)) &&
		(len(e.Statuses) == 0 || slices.Contains(e.Statuses, string(status)))
}

// WithoutSecrets is the endpoint as everybody may see it.
func (e Endpoint) WithoutSecrets() Endpoint {
	e.Secret, e.OldSecret = "", ""
	return e
}

// Rotate replaces the secret; the old one signs for a while yet.
func (e *Endpoint) Rotate(secret string, nowMs int64) {
	if secret != e.Secret && e.Secret != "" {
		e.OldSecret, e.OldSecretUntilMs = e.Secret, nowMs+RotationMs
	}
	e.Secret = secret
}

// SecretsAt are the secrets that sign at a time in Unix milliseconds, the newest first.
func (e *Endpoint) SecretsAt(nowMs int64) []string {
	if e.OldSecret != "" && nowMs < e.OldSecretUntilMs {
		return []string{e.Secret, e.OldSecret}
	}
	return []string{e.Secret}
}

// EndpointChange is the body of PUT /admin/webhooks/{name}: the endpoint without what the
// server says of it. Without a secret it keeps the one it has.
type EndpointChange struct {
	Endpoint
	// Version is that of the endpoint that the request means to change; 0 is any.
	Version int64
}

func (e *EndpointChange) members(c *coder) {
	e.Endpoint.members(c)
	optInteger(c, `,"version":`, &e.Version, &versionRule)
}

// ParseEndpointChange reads the body of PUT /admin/webhooks/{name}.
func ParseEndpointChange(body []byte) (*EndpointChange, *Error) {
	o, e := endpointChangeShape.object(), &EndpointChange{}
	o.scanBody(body, endpointChangeBits)
	e.members(&coder{in: &o, shape: endpointChangeShape})
	if o.err != nil {
		return nil, o.err
	}
	return e, nil
}

// AppendEndpointChange appends the body of PUT /admin/webhooks/{name}.
func AppendEndpointChange(dst []byte, e *EndpointChange) []byte {
	c := writing(&dst)
	e.members(&c)
	return c.done()
}

// rotation is the body of POST /admin/webhooks/{name}/rotate.
type rotation struct{ secret string }

func (r *rotation) members(c *coder) { c.optText(`,"secret":`, &r.secret, &secretRule) }

// ParseRotation reads the body of POST /admin/webhooks/{name}/rotate: the new secret, empty
// if the server makes one.
func ParseRotation(body []byte) (secret string, refusal *Error) {
	o, r := rotationShape.object(), rotation{}
	o.scanBody(orEmptyObject(body), rotationShape.bits)
	r.members(&coder{in: &o, shape: rotationShape})
	return r.secret, o.err
}

// AppendRotation appends the body of POST /admin/webhooks/{name}/rotate.
func AppendRotation(dst []byte, secret string) []byte {
	c, r := writing(&dst), rotation{secret}
	r.members(&c)
	return c.done()
}

// EndpointFigures are an endpoint and how it fares. Its secret is there only in the answer to
// the request that gave it one.
type EndpointFigures struct {
	Name string
	EndpointChange
	// Failures is how many calls in a row brought no outcome to the endpoint, FailingSinceMs
	// since when none has; both begin anew with the server and with each change.
	Failures       int
	FailingSinceMs int64
}

func (f *EndpointFigures) members(c *coder) {
	c.text(`,"name":`, &f.Name, &needTextRule)
	f.EndpointChange.members(c)
	optInteger(c, `,"failures":`, &f.Failures, &anyIntegerRule)
	c.optTime(`,"failingSince":`, &f.FailingSinceMs, &anyTimeRule)
}

// AppendEndpointFigures appends the figures as a JSON object.
func AppendEndpointFigures(dst []byte, f *EndpointFigures) []byte {
	c := writing(&dst)
	f.members(&c)
	return c.done()
}

// ParseEndpointFigures reads what AppendEndpointFigures wrote.
func ParseEndpointFigures(data []byte) (*EndpointFigures, error) {
	return parseAnswer("endpoint", data, endpointsShape, (*EndpointFigures).members)
}

// UnmarshalJSON reads figures as AppendEndpointFigures writes them.
func (f *EndpointFigures) UnmarshalJSON(data []byte) error {
	return endpointsShape.read("endpoint", data, f.members)
}

// ParseEndpointList reads the answer of GET /admin/webhooks, an object whose member webhooks
// lists the figures.
func ParseEndpointList(data []byte) ([]EndpointFigures, error) {
	var list struct{ Webhooks []EndpointFigures }
	if err := readJSON("list of webhooks", data, &list, func() bool { return list.Webhooks != nil }); err != nil {
		return nil, err
	}
	return list.Webhooks, nil
}

// EndpointTest is what came of a test message to an endpoint.
type EndpointTest struct {
	// Status is the HTTP status of the answer, 0 without one; Problem then says why.
	Status  int
	Problem string
	Ms      int64
}

func (t *EndpointTest) members(c *coder) {
	integer(c, `,"status":`, &t.Status, true, &anyIntegerRule)
	c.optText(`,"problem":`, &t.Problem, &anyTextRule)
	integer(c, `,"ms":`, &t.Ms, true, &anyIntegerRule)
}

// AppendEndpointTest appends what came of a test.
func AppendEndpointTest(dst []byte, t *EndpointTest) []byte {
	c := writing(&dst)
	t.members(&c)
	return c.done()
}

// ParseEndpointTest reads what AppendEndpointTest wrote.
func ParseEndpointTest(data []byte) (*EndpointTest, error) {
	return parseAnswer("answer to a test", data, endpointTestShape, (*EndpointTest).members)
}
