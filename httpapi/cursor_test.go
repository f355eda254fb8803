package httpapi

import (
	"net/url"
	"testing"

	"codeq/wire"
)

// FuzzCursorOf: the cursor of a list is the one that a page gave, or a refusal.
func FuzzCursorOf(f *testing.F) {
	id := wire.SessionID{6: 0x70, 8: 0x80, 15: 1}.String()
	for _, query := range []string{"", "cursor=", "cursor=" + id, "cursor=" + id + "&cursor=" + id, "cursor=%zz", "cursor=x&a=b", "%63ursor=" + id, ";"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		after, refusal := cursorOf(&url.URL{RawQuery: query})
		values, err := url.ParseQuery(query)
		switch {
		case refusal != nil:
			if refusal.Code != wire.CodeInvalidArgument || err == nil && len(values["cursor"]) == 0 {
				t.Errorf("%q is refused: %v", query, refusal)
			}
		case len(values["cursor"]) == 0:
			if !after.IsZero() {
				t.Errorf("%q begins behind %v", query, after)
			}
		default:
			if len(values["cursor"]) != 1 || values["cursor"][0] != after.String() {
				t.Errorf("%q begins behind %v", query, after)
			}
		}
	})
}
