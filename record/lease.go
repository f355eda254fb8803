package record

import (
	"encoding/hex"

	"codeq/wire"
)

// Lease is the value of the in-progress key: everything a grant decides,
// until the task leaves the in-progress set.
type Lease struct {
	Token    wire.Token
	Delivery int
	// Session carries the lease: its end is the end of the session's grace. It
	// is zero while HTTP carries it, until its own end.
	Session wire.SessionID
	// OverHTTP says that the delivery was made over HTTP, whoever carries its
	// lease since: only then may its holder act without the token.
	OverHTTP bool
	Subject  string
	WorkerID string
	// DeadlineMs is the stored lease end; it may run ahead of the
	// acknowledged one, never behind.
	DeadlineMs int64
	// LeaseForMs is the length asked for by the subscription or claim.
	LeaseForMs  int64
	GrantedAtMs int64
	// RunUntilMs is GrantedAtMs and how long the delivery may run, 0 for as long as
	// its lease is extended. That begins when it is confirmed, so that its end is
	// later as long as the server does not restart.
	RunUntilMs int64
	// Progress and Printed are those of this delivery, see Task.
	Progress string
	Printed  bool
	// Files are those of the task.
	Files Files

	// Newer has the fields that a newer program has added.
	Newer string
}

func (l *Lease) fields(f *form) {
	number(f, 1, "delivery", &l.Delivery)
	f.array(2, "token", l.Token[:], hex.AppendEncode)
	f.array(3, "session", l.Session[:], appendID)
	f.flag(4, "overHttp", &l.OverHTTP)
	f.str(5, "subject", &l.Subject)
	f.str(6, "workerId", &l.WorkerID)
	number(f, 7, "deadlineMs", &l.DeadlineMs)
	number(f, 8, "leaseForMs", &l.LeaseForMs)
	number(f, 9, "grantedAtMs", &l.GrantedAtMs)
	number(f, 10, "runUntilMs", &l.RunUntilMs)
	f.raw(11, "progress", &l.Progress)
	f.flag(12, "printed", &l.Printed)
	number(f, 13, "filesBegun", &l.Files.Begun)
	f.raw(14, "filesListed", &l.Files.Listed)
	number(f, 15, "fileBytes", &l.Files.Bytes)
}

func appendID(dst, id []byte) []byte { return wire.SessionID(id).AppendTo(dst) }

// AppendLease adds the value of a lease.
func AppendLease(dst []byte, l *Lease) []byte {
	f := form{out: dst}
	l.fields(&f)
	return append(f.out, l.Newer...)
}

// ParseLease reads what AppendLease wrote.
func ParseLease(data []byte, l *Lease) (err error) {
	f := read(string(data))
	*l = Lease{}
	l.fields(&f)
	l.Newer, err = f.end()
	return err
}

// RunForMs is how long the delivery may run, 0 for as long as its lease is
// extended.
func (l *Lease) RunForMs() int64 {
	if l.RunUntilMs == 0 {
		return 0
	}
	return l.RunUntilMs - l.GrantedAtMs
}
