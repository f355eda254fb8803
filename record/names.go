package record

import "codeq/wire"

// recordNames and leaseNames say what the short names of members mean, for
// Describe. They are the only place where both stand.
var (
	recordNames = map[string]string{
		"c":  "command",
		"t":  "tenant",
		"p":  "priority",
		"s":  "status",
		"l":  "location",
		"a":  "attempts",
		"m":  "maxAttempts",
		"b":  "payloadBytes",
		"ct": "createdAtMs",
		"ut": "updatedAtMs",
		"q":  "seq",
		"dt": "dueAtMs",
		"et": "endedAtMs",
		"xt": "expiresAtMs",
		"xd": "expired",
		"rt": "timeoutSeconds",
		"d":  "deliveries",
		"lk": "lastToken",
		"ls": "lastSubject",
		"lw": "lastWorkerId",
		"lh": "lastOverHttp",
		"rk": "resultToken",
		"r":  "releases",
		"lo": "losses",
		"un": "undelivered",
		"x":  "deadCause",
		"e":  "error",
		"k":  "idempotencyKey",
		"f":  "fingerprint",
		"tp": "traceParent",
		"ts": "traceState",
		"h":  "payloadHere",
		"o":  "outcomeHere",
		"rb": "resultBytes",
	}
	leaseNames = map[string]string{
		"d":  "delivery",
		"k":  "token",
		"s":  "session",
		"h":  "overHttp",
		"u":  "subject",
		"w":  "workerId",
		"dt": "deadlineMs",
		"lf": "leaseForMs",
		"gt": "grantedAtMs",
		"rt": "runUntilMs",
	}
)

// inFull is a stored object with its members under their full names, a record
// with its id in front and what stands behind it after a space. What cannot be
// read, or has a name that is not in the table, is shown as it is.
func inFull(names map[string]string, id wire.TaskID, value []byte) string {
	s := scanner{text: string(value)}
	out := []byte{'{'}
	if !id.IsZero() {
		out = append(id.AppendTo(append(out, `"id":"`...)), `",`...)
	}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		from := s.at
		s.skip(0)
		if full, known := names[name]; known {
			name = full
		}
		out = append(append(appendQuoted(out, name), ':'), s.text[from:s.at]...)
		out = append(out, ',')
	}
	if s.failed || out[len(out)-1] != ',' {
		return string(value)
	}
	out = append(out[:len(out)-1], '}')
	if rest := s.text[s.at:]; rest != "" {
		out = append(append(out, ' '), rest...)
	}
	return string(out)
}
