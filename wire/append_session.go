package wire

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
}

// AppendSessionFigures appends the figures as a JSON object.
func AppendSessionFigures(dst []byte, f *SessionFigures) []byte {
	dst = append(f.ID.AppendTo(append(dst, `{"sessionId":"`...)), '"')
	dst = optText(dst, `,"workerId":`, f.WorkerID)
	dst = appendText(dst, `,"subject":`, f.Subject)
	dst = appendTexts(dst, `,"commands":`, f.Commands)
	dst = appendInt(dst, `,"window":`, int64(f.Window))
	dst = appendInt(dst, `,"held":`, int64(f.Held))
	dst = appendText(dst, `,"state":`, f.State)
	dst = appendTime(dst, `,"connectedAt":`, f.ConnectedAtMs)
	dst = appendTime(dst, `,"lastSeenAt":`, f.LastSeenAtMs)
	return append(dst, '}')
}
