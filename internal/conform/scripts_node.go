package conform

import (
	"net/http"

	"codeq/internal/chaos"
)

// nodeScripts are about servers with several addresses.
var nodeScripts = []script{
	{"node/next-address", "It goes on to the next address when one does not answer", "nodes", func(x *run) {
		s := x.play()
		x.startWorker(members{"url": "http://" + x.freeAddr() + "," + x.url})
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
	}},
	{"node/next-address-of-a-post", "It goes on to the next address when one does not answer", "nodes", func(x *run) {
		x.open()
		id := x.ask("enqueue", members{"url": "http://" + x.freeAddr() + "," + x.url, "command": "a", "payload": 1, "key": "k"})
		x.want("enqueued", members{"id": id, "replayed": false})
	}},
	{"node/leader-is-asked", "and asks the node that the header `Codeq-Leader` names, if it is one of them", "nodes", func(x *run) {
		x.open()
		follower, leader := x.stage(), x.stage()
		leader.leads(x.url, leader)
		follower.leads(x.url, leader)
		both := members{"url": "http://" + follower.addr + ",http://" + leader.addr, "command": "a", "payload": 1}
		for range 3 {
			x.want("enqueued", members{"id": x.ask("enqueue", both)})
		}
		if first, then := len(follower.requests("/tasks")), len(leader.requests("/tasks")); first != 1 || then != 2 {
			x.fail("the first node got %d requests, and the one that it names %d, want 1 and 2", first, then)
		}
	}},
	{"node/lost-leader-is-not-asked", "and not lost a moment ago", "nodes", func(x *run) {
		x.open()
		lost, err := chaos.Start(x.server.Addr())
		x.must(err)
		x.after(lost.Close)
		lost.Refuse()
		follower := x.stage()
		follower.leads(x.url, &stage{addr: lost.Addr})
		both := members{"url": "http://" + lost.Addr + ",http://" + follower.addr, "command": "a", "payload": 1}
		for _, key := range []string{"k1", "k2", "k3"} {
			both["key"] = key
			x.want("enqueued", members{"id": x.ask("enqueue", both)})
		}
		if n := lost.Taken(); n != 1 {
			x.fail("the node that was lost got %d connections, want 1", n)
		}
	}},
	{"node/no-leader-is-in-doubt", "`not_leader` leaves open what was done, as `internal` does.", "nodes", func(x *run) {
		x.open()
		lost := x.stage()
		lost.refuses(503, `{"error":"the leader is lost","code":"not_leader","retryable":true}`)
		both := members{"url": "http://" + lost.addr + "," + x.url, "command": "a", "payload": 1}
		x.want("error", members{"id": x.ask("enqueue", both), "code": "not_leader"})
		if n := x.countTasks(); n != 0 {
			x.fail("the task was posted again, without a key")
		}
		both["key"] = "k"
		x.want("enqueued", members{"id": x.ask("enqueue", both), "replayed": false})
	}},
	{"node/stranger-is-not-asked", "The token goes to no other host or port.", "nodes", func(x *run) {
		x.open()
		follower, other, stranger := x.stage(), x.stage(), x.stage()
		follower.leads(x.url, stranger)
		both := members{"url": "http://" + follower.addr + ",http://" + other.addr, "command": "a", "payload": 1}
		for range 2 {
			x.want("enqueued", members{"id": x.ask("enqueue", both)})
		}
		if n := len(stranger.requests("")); n != 0 {
			x.fail("a node that nobody has given as an address got %d requests", n)
		}
		if n := x.countTasks(); n != 2 {
			x.fail("there are %d tasks, want 2", n)
		}
	}},
}

// leads passes requests on to a server, and says in each answer that another stage leads.
func (s *stage) leads(url string, leader *stage) {
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Codeq-Leader", "http://"+leader.addr)
		return s.pass(w, r, url)
	})
}
