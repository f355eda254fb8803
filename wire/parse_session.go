package wire

import (
	"errors"
	"fmt"
	"math"
)

// The members of the figures of a session.
const (
	sessionID = iota
	sessionWorkerID
	sessionSubject
	sessionCommands
	sessionWindow
	sessionHeld
	sessionState
	sessionConnectedAt
	sessionLastSeenAt
)

var sessionNames = []string{
	sessionID: "sessionId", sessionWorkerID: "workerId", sessionSubject: "subject", sessionCommands: "commands",
	sessionWindow: "window", sessionHeld: "held", sessionState: "state", sessionConnectedAt: "connectedAt",
	sessionLastSeenAt: "lastSeenAt",
}

// ParseSessionList reads the answer of GET /admin/sessions: figures, and the
// cursor of the next page, "" when there is none.
func ParseSessionList(data []byte) (list []SessionFigures, cursor string, err error) {
	o := object{names: []string{"sessions", "cursor"}}
	if problem := o.scanAlone(data); problem != "" {
		return nil, "", errors.New("read session list: list " + problem)
	}
	elements, given := o.elements(0, CodeInvalidBody, math.MaxInt)
	if !given {
		o.refuse(CodeInvalidBody, 0, "is required: a list")
	}
	cursor = o.text(1, &anyTextRule)
	for i, raw := range elements {
		e := o.element(0, i, raw, sessionNames, CodeInvalidBody)
		list = append(list, e.sessionFigures())
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	if o.err != nil {
		return nil, "", fmt.Errorf("read session list: %s", o.err.Sentence)
	}
	return list, cursor, nil
}

func (o *object) sessionFigures() SessionFigures {
	f := SessionFigures{
		WorkerID:      o.text(sessionWorkerID, &anyTextRule),
		Subject:       o.text(sessionSubject, &anyTextRule),
		Commands:      o.texts(sessionCommands),
		Window:        int(o.integer(sessionWindow, &anyIntegerRule)),
		Held:          int(o.integer(sessionHeld, &anyIntegerRule)),
		State:         o.text(sessionState, &needTextRule),
		ConnectedAtMs: o.timeMs(sessionConnectedAt, CodeInvalidBody),
		LastSeenAtMs:  o.timeMs(sessionLastSeenAt, CodeInvalidBody),
	}
	id, ok := ParseSessionID(o.text(sessionID, &needTextRule))
	if !ok && o.err == nil {
		o.refuse(CodeInvalidBody, sessionID, "must be the id of a session")
	}
	f.ID = id
	return f
}
