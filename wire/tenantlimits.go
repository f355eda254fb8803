package wire

import (
	"cmp"
	"strings"
)

// TenantLimits are the limits of one tenant. A zero field is no limit.
type TenantLimits struct {
	// DoorLimits hold for all credentials of the tenant together.
	DoorLimits
	// PendingTasks is how many tasks of the tenant may wait, PendingBytes how large their
	// payloads may be together.
	PendingTasks, PendingBytes int64
	// ArtifactBytes is how large the files of its tasks may be together.
	ArtifactBytes int64
	// Weight is how many turns the tenant has when other tenants have one; 0 is one.
	Weight int
	// PerCredential holds for each subject of the tenant.
	PerCredential DoorLimits
}

// DoorLimits are limits of requests.
type DoorLimits struct {
	// EnqueuesPerSecond is how many tasks may be made in a second on the long run, Burst
	// how many at once after a pause; a Burst of 0 is one second's worth.
	EnqueuesPerSecond, Burst int
	// ClaimsPerSecond is how many tasks may be asked for over HTTP in a second.
	ClaimsPerSecond int
	// Sessions is how many sessions may be open.
	Sessions int
}

// BurstInForce is how many tasks may be made at once after a pause.
func (l *DoorLimits) BurstInForce() int { return cmp.Or(l.Burst, l.EnqueuesPerSecond) }

// CountsPending reports whether what waits of the tenant has a limit.
func (l *TenantLimits) CountsPending() bool { return l.PendingTasks != 0 || l.PendingBytes != 0 }

// MaxWeight is the highest weight of a tenant, MaxPendingTasks the highest limit of tasks
// that wait, MaxPendingBytes that of their payloads, and of files.
const (
	MaxWeight       = 100
	MaxPendingTasks = 1_000_000_000
	MaxPendingBytes = 1 << 50
)

// The limits of a tenant as refusals name them.
const (
	LimitEnqueues = "enqueuesPerSecond"
	LimitClaims   = "claimsPerSecond"
	LimitPending  = "pendingTasks"
	LimitBytes    = "pendingBytes"
	LimitFiles    = "artifactBytes"
	LimitSessions = "sessions"
)

var (
	weightRule  = integerRule{code: CodeInvalidArgument, low: 1, high: MaxWeight}
	pendingRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxPendingTasks}
	bytesRule   = integerRule{code: CodeInvalidArgument, low: 1, high: MaxPendingBytes}
)

func (l *TenantLimits) members(c *coder) {
	l.DoorLimits.members(c)
	optInteger(c, `,"pendingTasks":`, &l.PendingTasks, &pendingRule)
	optInteger(c, `,"pendingBytes":`, &l.PendingBytes, &bytesRule)
	optInteger(c, `,"artifactBytes":`, &l.ArtifactBytes, &bytesRule)
	optInteger(c, `,"weight":`, &l.Weight, &weightRule)
	if c.in != nil {
		c.inner(`,"perCredential":`, CodeInvalidArgument, doorShape, l.PerCredential.members)
	} else if l.PerCredential != (DoorLimits{}) {
		at := c.open(`,"perCredential":`)
		l.PerCredential.members(c)
		c.close(at)
	}
}

func (l *DoorLimits) members(c *coder) {
	optInteger(c, `,"enqueuesPerSecond":`, &l.EnqueuesPerSecond, &queueLimitRule)
	optInteger(c, `,"burst":`, &l.Burst, &queueLimitRule)
	optInteger(c, `,"claimsPerSecond":`, &l.ClaimsPerSecond, &queueLimitRule)
	optInteger(c, `,"sessions":`, &l.Sessions, &queueLimitRule)
	if c.in != nil && !c.in.answer && l.Burst != 0 && l.EnqueuesPerSecond == 0 {
		c.in.refuseNamed(CodeInvalidArgument, "burst", "needs enqueuesPerSecond, which it belongs to")
	}
}

var (
	doorShape         = shapeOf(new([]string), new(DoorLimits).members)
	tenantLimitsShape = shapeOf(new([]string), new(TenantLimits).members)
	limitsChangeShape = shapeOf(new([]string), new(LimitsChange).members)
	limitsShape       = shapeOf(new([]string), new(LimitsFigures).members)
)

// ParseTenantLimits reads what AppendTenantLimits wrote. Unknown members are passed over.
func ParseTenantLimits(data []byte) (*TenantLimits, error) {
	return parseAnswer("limits", data, tenantLimitsShape, (*TenantLimits).members)
}

// AppendTenantLimits appends the limits as a JSON object.
func AppendTenantLimits(dst []byte, l *TenantLimits) []byte {
	c := writing(&dst)
	l.members(&c)
	return c.done()
}

// LimitsChange is the body of PUT /admin/limits/{tenant}.
type LimitsChange struct {
	TenantLimits
	// Version is that of the limits that the request means to change; 0 is any.
	Version int64
}

func (l *LimitsChange) members(c *coder) {
	l.TenantLimits.members(c)
	optInteger(c, `,"version":`, &l.Version, &versionRule)
}

var versionRule = integerRule{code: CodeInvalidArgument, low: 1, high: 1<<53 - 1}

// ParseLimitsChange reads the body of PUT /admin/limits/{tenant}.
func ParseLimitsChange(body []byte) (*LimitsChange, *Error) {
	o, l := limitsChangeShape.object(), &LimitsChange{}
	o.scanBody(orEmptyObject(body), limitsChangeShape.bits)
	l.members(&coder{in: &o, shape: limitsChangeShape})
	if o.err != nil {
		return nil, o.err
	}
	return l, nil
}

// AppendLimitsChange appends the body of PUT /admin/limits/{tenant}.
func AppendLimitsChange(dst []byte, l *LimitsChange) []byte {
	c := writing(&dst)
	l.members(&c)
	return c.done()
}

// LimitsFigures are the limits of a tenant and how much of them is used.
type LimitsFigures struct {
	TenantID string
	// LimitsChange has the limits and their version, which is 0 for a tenant without any.
	LimitsChange
	// Used is 0 for each limit that is not set.
	Used UsedOfLimits
	// Refused counts what each limit has refused since the start of the server.
	Refused RefusedByLimit
}

// RefusedByLimit are numbers of tasks, of claims, of files and of sessions. Bytes are the tasks
// that LimitBytes refused.
type RefusedByLimit struct{ Enqueues, Claims, Pending, Bytes, Files, Sessions int64 }

func (r *RefusedByLimit) members(c *coder) {
	optInteger(c, `,"enqueuesPerSecond":`, &r.Enqueues, &anyIntegerRule)
	optInteger(c, `,"claimsPerSecond":`, &r.Claims, &anyIntegerRule)
	optInteger(c, `,"pendingTasks":`, &r.Pending, &anyIntegerRule)
	optInteger(c, `,"pendingBytes":`, &r.Bytes, &anyIntegerRule)
	optInteger(c, `,"artifactBytes":`, &r.Files, &anyIntegerRule)
	optInteger(c, `,"sessions":`, &r.Sessions, &anyIntegerRule)
}

// UsedOfLimits is how much is used: tasks that wait, bytes of their payloads, bytes of files, open
// sessions.
type UsedOfLimits struct {
	Pending, Bytes, Files int64
	Open                  int
}

func (u *UsedOfLimits) members(c *coder) {
	optInteger(c, `,"pendingTasks":`, &u.Pending, &anyIntegerRule)
	optInteger(c, `,"pendingBytes":`, &u.Bytes, &anyIntegerRule)
	optInteger(c, `,"artifactBytes":`, &u.Files, &anyIntegerRule)
	optInteger(c, `,"sessions":`, &u.Open, &anyIntegerRule)
}

var (
	usedShape    = shapeOf(new([]string), new(UsedOfLimits).members)
	refusedShape = shapeOf(new([]string), new(RefusedByLimit).members)
)

func (f *LimitsFigures) members(c *coder) {
	c.text(`,"tenantId":`, &f.TenantID, &anyTextRule)
	f.LimitsChange.members(c)
	if c.in != nil {
		c.inner(`,"used":`, CodeInvalidBody, usedShape, f.Used.members)
		c.inner(`,"refused":`, CodeInvalidBody, refusedShape, f.Refused.members)
		return
	}
	if f.Used != (UsedOfLimits{}) {
		at := c.open(`,"used":`)
		f.Used.members(c)
		c.close(at)
	}
	if f.Refused != (RefusedByLimit{}) {
		at := c.open(`,"refused":`)
		f.Refused.members(c)
		c.close(at)
	}
}

// AppendLimitsFigures appends the figures as a JSON object.
func AppendLimitsFigures(dst []byte, f *LimitsFigures) []byte {
	c := writing(&dst)
	f.members(&c)
	return c.done()
}

// ParseLimitsFigures reads what AppendLimitsFigures wrote.
func ParseLimitsFigures(data []byte) (*LimitsFigures, error) {
	return parseAnswer("limits", data, limitsShape, (*LimitsFigures).members)
}

// UnmarshalJSON reads figures as AppendLimitsFigures writes them.
func (f *LimitsFigures) UnmarshalJSON(data []byte) error {
	return limitsShape.read("limits", data, f.members)
}

// ParseLimitsList reads the answer of GET /admin/limits, an object whose member limits
// lists the figures.
func ParseLimitsList(data []byte) ([]LimitsFigures, error) {
	var list struct{ Limits []LimitsFigures }
	if err := readJSON("list of limits", data, &list, func() bool { return list.Limits != nil }); err != nil {
		return nil, err
	}
	return list.Limits, nil
}

// IsSystemCommand reports whether a command is reserved for the server. No limit of a
// tenant counts the tasks of such a queue.
func IsSystemCommand(command string) bool {
	return strings.HasPrefix(command, systemPrefix)
}
