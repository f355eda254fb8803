package httpapi

import (
	"net/http"
	"net/url"
	"testing"

	"codeq/wire"
)

// FuzzAfterSession: the cursor of a list is the one that a page gave, none or
// empty for the first page, or a refusal.
func FuzzAfterSession(f *testing.F) {
	id := wire.SessionID{6: 0x70, 8: 0x80, 15: 1}.String()
	for _, query := range []string{"", "cursor=", "cursor=" + id, "cursor=" + id + "&cursor=" + id, "cursor=%zz", "cursor=x&a=b", "%63ursor=" + id, ";"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		c := &call{r: &http.Request{URL: &url.URL{RawQuery: query}}}
		after, refusal := wire.SessionID{}, c.readQuery([]string{"cursor"})
		values, err := url.ParseQuery(query)
		if refusal == nil {
			after, refusal = c.afterSession()
		} else if unknown := err == nil && (len(values) > 1 || len(values["cursor"]) == 0); unknown != (refusal.Code == wire.CodeUnknownMember) && len(values["cursor"]) < 2 {
			t.Errorf("%q is refused: %v", query, refusal)
		}
		switch {
		case refusal != nil:
			if err == nil && len(values) == 0 || query == "cursor=" {
				t.Errorf("%q is refused: %v", query, refusal)
			}
		case values.Get("cursor") == "":
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
