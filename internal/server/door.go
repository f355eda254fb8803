package server

import (
	"net/http"
	"strings"
	"time"

	"codeq/internal/httpapi"
	"codeq/internal/peer"
)

// waitsForLeader is how long a request waits at a node until a leader is known. An election takes
// less, and the pause of a client that is refused would be longer than the rest of it.
const waitsForLeader = 3 * time.Second

// nextFor is how long a request that could not be sent to a leader waits for the next one.
const nextFor = 2 * time.Second

// door is the handler of a node that does not lead.
type door struct {
	front    *front
	follower http.Handler
	// known reports whether requests can be passed to a leader, and closes changed when it may be
	// otherwise; changed is nil if it never will be.
	known func() (known bool, changed <-chan struct{})
	// send passes a request to the leader.
	send func(w http.ResponseWriter, r *http.Request) peer.Passage
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.admit(w, r, nil) }

// admit serves a request once this node leads or knows who does, but not by a handler that has sent
// it here. One that reads what this node has waits for none.
func (d *door) admit(w http.ResponseWriter, r *http.Request, not http.Handler) {
	if strings.HasPrefix(r.URL.Path, apiPath) && !httpapi.TakesStale(r) {
		late := time.NewTimer(waitsForLeader)
		defer late.Stop()
		for waits := true; waits; {
			now := d.front.current.Load()
			if now.Handler != d && now.Handler != not {
				now.ServeHTTP(w, r)
				return
			}
			known, changed := d.known()
			if known || changed == nil {
				break
			}
			select {
			case <-now.gone:
			case <-changed:
			case <-late.C:
				waits = false
			case <-r.Context().Done():
				waits = false
			}
		}
	}
	d.follower.ServeHTTP(w, r)
}

// pass passes a request to the leader. What could not be sent goes to the next one; here is the
// handler of this node if that is the one.
func (d *door) pass(w http.ResponseWriter, r *http.Request) (got peer.Passage, here http.Handler) {
	known, changed := d.known()
	if got = d.send(w, r); !got.Unsent || !known {
		return got, nil
	}
	late := time.NewTimer(nextFor)
	defer late.Stop()
	for got.Unsent {
		now := d.front.current.Load()
		if now.Handler != d {
			return got, now.Handler
		}
		select {
		case <-now.gone:
		case <-changed:
			_, changed = d.known()
			got = d.send(w, r)
		case <-late.C:
			return got, nil
		case <-r.Context().Done():
			return got, nil
		}
	}
	return got, nil
}
