package peer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

// id is the id of a node that begins so.
func id(begin string) string { return begin + strings.Repeat("0", 32-len(begin)) }

func TestNodesGetTheirVotesInPairs(t *testing.T) {
	l := &log{}
	p, _ := first(t, l, nil)
	asks := func(begin string, want string) {
		t.Helper()
		err := p.addMember(t.Context(), id(begin), &member{Address: "10.0.0.1:" + begin, LastLog: 0})
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s is answered %v, want %q", begin, err, want)
		}
	}
	votes := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range l.Members()[1:] {
			if m.Voter {
				got = append(got, strings.TrimRight(m.Node, "0"))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%v vote, want %v", got, want)
		}
	}
	asks("1", "gets its vote when it has all data")
	asks("1", "2 voters can lose no more nodes than 1 can")
	votes()
	asks("2", "gets its vote when it has all data")
	asks("2", "")
	asks("1", "")
	votes("1", "2")
	// A fourth waits until one is removed.
	asks("3", "gets its vote when it has all data")
	asks("3", "4 voters can lose no more nodes than 3 can")
	l.remove(id("1"))
	asks("3", "")
	votes("2", "3")
	asks("1", "was removed")
	// Nobody gets the address of a member.
	if err := p.addMember(t.Context(), id("4"), &member{Address: "10.0.0.1:2"}); err == nil || !strings.Contains(err.Error(), "codeq cluster remove "+id("2")) {
		t.Errorf("got %v", err)
	}
	// One that is behind waits, whatever the number of votes is.
	l.mu.Lock()
	l.lastLog = 1000
	l.mu.Unlock()
	asks("5", "gets its vote when it has all data")
	asks("5", "gets its vote when it has all data")
	l.lead(Member{Node: id("2"), Address: "10.0.0.1:2"})
	var elsewhere *refusedError
	if err := p.addMember(t.Context(), id("5"), &member{Address: "10.0.0.1:5"}); !errors.As(err, &elsewhere) || elsewhere.Leader != "10.0.0.1:2" {
		t.Errorf("a node that does not lead answers %v", err)
	}
}

func TestWhatMayBeRemoved(t *testing.T) {
	p, _ := first(t, &log{}, nil)
	for _, c := range []struct {
		name  string
		nodes string // L leads, v votes, d votes and is away, n has no vote; the second one is to be removed
		waits bool
		want  string
	}{
		{"the leader", "vLv", false, "hand the lead over first"},
		{"one of three", "Lvv", false, "2 voters can lose no more nodes than 1 can"},
		{"one of three, and another waits", "Lvvn", true, ""},
		{"one of three that is away", "Ldv", false, ""},
		{"one of three, and one is away", "Lvd", false, "only 1 of the other 2 voters answer, and 2 are needed"},
		{"one of three that is away, as another is", "Ldd", false, "only 1 of the other 2"},
		{"one without a vote", "Lnvv", false, ""},
		{"one of two", "Lv", false, ""},
		{"one of five", "Lvvvv", false, "4 voters can lose no more nodes than 3 can"},
		{"one of five that is away", "Ldvvv", false, ""},
		{"one of four", "Lvvv", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &wire.ClusterStatus{}
			for i, kind := range c.nodes {
				n := wire.ClusterNode{Node: id(string(rune('a' + i))), Voter: kind != 'n', Reachable: kind != 'd'}
				if kind == 'L' {
					s.Leader = n.Node
				}
				if n.Voter {
					s.Voters++
				}
				if n.Voter && n.Reachable {
					s.Reachable++
				}
				s.Nodes = append(s.Nodes, n)
			}
			clear(p.waiting)
			if c.waits {
				p.waiting[id("f")] = time.Now()
			}
			refusal := p.mayRemove(s, &s.Nodes[1])
			if refusal == nil && c.want != "" || refusal != nil && (c.want == "" || !strings.Contains(refusal.Sentence, c.want)) {
				t.Errorf("got %v, want %q", refusal, c.want)
			}
		})
	}
}

func TestNodesAreNamedByABeginOrAnAddress(t *testing.T) {
	s := &wire.ClusterStatus{Nodes: []wire.ClusterNode{{Node: id("ab"), Address: "10.0.0.1:1"}, {Node: id("ac"), Address: "10.0.0.2:1"}}}
	for named, want := range map[string]string{
		"ab": id("ab"), id("ac"): id("ac"), "10.0.0.2:1": id("ac"), "a": "several nodes begin", "": "has no node", "10.0.0.2": "has no node", "x": "has no node",
	} {
		n, refusal := find(s, named)
		if refusal == nil && n.Node != want || refusal != nil && !strings.Contains(refusal.Sentence, want) {
			t.Errorf("%q is %v, %v, want %s", named, n, refusal, want)
		}
	}
}
