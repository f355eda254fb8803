package client

import (
	"testing"

	"github.com/lxzan/gws"
)

// What a server closed a session with is told as what happened: this package connects
// again by itself.
func TestEndOfAConnectionIsNoOrder(t *testing.T) {
	for want, closed := range map[string]*gws.CloseError{
		"the server ended the session (close code 1012): the server restarts": {Code: 1012, Reason: []byte("the server restarts; connect again")},
		"the server ended the session (close code 1011)":                      {Code: 1011},
	} {
		if got := closeReason(closed).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
