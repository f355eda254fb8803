package httpapi

import (
	"crypto/sha256"
	"encoding/base64"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// A cursor has the position of a list in each shard: a version, the number of positions, each
// of them behind its length, and a check over all that and the list. It is no secret: a
// made-up cursor shows another page of a list that the client may read anyway. The check
// finds cursors that were cut or belong to another list.
const (
	cursorVersion    = 1
	cursorCheckBytes = 8
)

// encodeCursor makes the text of a cursor. Without places there is no next page, and no cursor.
func encodeCursor(q record.QueueKey, state store.ListState, places []store.ListPlace) string {
	if places == nil {
		return ""
	}
	raw := []byte{cursorVersion, byte(len(places))}
	for _, place := range places {
		raw = append(append(raw, byte(len(place))), place...)
	}
	return base64.RawURLEncoding.EncodeToString(append(raw, cursorCheck(raw, q, state)...))
}

// appendCursorMember appends the member cursor of an answer, if there is a cursor.
func appendCursorMember(dst []byte, cursor string) []byte {
	if cursor == "" {
		return dst
	}
	return append(append(append(dst, `,"cursor":"`...), cursor...), '"')
}

// decodeCursor reads a cursor of that list. It compares the text with the encoding of what it
// read, because the decoder of base64 ignores line breaks and unused bits.
func decodeCursor(text string, q record.QueueKey, state store.ListState) ([]store.ListPlace, *wire.Error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < 2+cursorCheckBytes || base64.RawURLEncoding.EncodeToString(raw) != text {
		return nil, badCursor
	}
	body, check := raw[:len(raw)-cursorCheckBytes], raw[len(raw)-cursorCheckBytes:]
	if string(check) != string(cursorCheck(body, q, state)) || body[0] != cursorVersion {
		return nil, badCursor
	}
	places := make([]store.ListPlace, body[1])
	rest := body[2:]
	for i := range places {
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return nil, badCursor
		}
		places[i], rest = rest[1:1+rest[0]], rest[1+rest[0]:]
	}
	if len(rest) > 0 {
		return nil, badCursor
	}
	return places, nil
}

func cursorCheck(body []byte, q record.QueueKey, state store.ListState) []byte {
	h := sha256.New()
	for _, part := range [][]byte{{byte(state)}, []byte(q.Command), {0}, []byte(q.Tenant), {0}, body} {
		// hash.Hash documents that Write never fails.
		_, _ = h.Write(part)
	}
	return h.Sum(nil)[:cursorCheckBytes]
}
