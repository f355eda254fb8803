package peer

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A node whose clock is off by an hour is shown, does not lead, and hands the lead over if it has it.
func TestANodeWithAWrongClockDoesNotLead(t *testing.T) {
	l := &log{}
	a, _ := first(t, l, nil)
	if err := a.MayLead(t.Context()); err != nil {
		t.Errorf("alone: %v", err)
	}
	l.ahead = time.Hour
	b, _ := join(t, a, l, nil)
	l.ahead = 0
	c, _ := join(t, a, l, nil)
	until(t, "all vote", func() bool { return countVoters(l.Members()) == 3 })
	until(t, "the difference is shown", func() bool {
		for _, n := range a.Status(t.Context()).Nodes {
			if off := n.Node == b.Self().Node; off != (n.ClockAheadMs > 3_500_000) || !off && n.ClockAheadMs != 0 {
				return false
			}
		}
		return true
	})
	if err := b.MayLead(t.Context()); err == nil || !strings.Contains(err.Error(), "ahead of those") {
		t.Errorf("an hour ahead: %v", err)
	}
	if err := c.MayLead(t.Context()); err != nil {
		t.Errorf("another one is an hour ahead: %v", err)
	}
	l.lead(b.Self())
	until(t, "it hands over", func() bool { leader, _ := l.Leader(); return leader != b.Self().Node })
}

// A node without authentication does not lead those with it, hands the lead over if it has it, and
// answers nothing that they pass. The other way round requests are passed, and checked by the leader.
func TestANodeWithoutAuthenticationDoesNotLeadOthersWithIt(t *testing.T) {
	l := &log{open: true}
	served := 0
	a, _ := first(t, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	if err := a.MayLead(t.Context()); err != nil {
		t.Errorf("alone: %v", err)
	}
	b, _ := join(t, a, l, http.NotFoundHandler())
	until(t, "both are members", func() bool { return len(l.Members()) == 2 })
	if err := b.MayLead(t.Context()); err != nil {
		t.Errorf("both are open: %v", err)
	}
	knowsLeader(t, b, a)
	ask := func(p *Peers) int {
		r := httptest.NewRecorder()
		if refusal := p.Pass(r, httptest.NewRequest(http.MethodGet, "/", nil)).Refusal; refusal != nil {
			t.Fatal(refusal)
		}
		return r.Code
	}
	if got := ask(b); got != http.StatusOK || served != 1 {
		t.Errorf("both are open: %d", got)
	}
	l.open = false
	c, _ := join(t, a, l, http.NotFoundHandler())
	until(t, "all vote", func() bool { return countVoters(l.Members()) == 3 })
	knowsLeader(t, c, a)
	if got := ask(c); got != http.StatusServiceUnavailable || served != 1 {
		t.Errorf("a request of a node that asks for credentials: %d", got)
	}
	if err := c.MayLead(t.Context()); err != nil {
		t.Errorf("the one that asks for credentials: %v", err)
	}
	until(t, "the others know it", func() bool {
		err := a.MayLead(t.Context())
		return err != nil && strings.Contains(err.Error(), "runs without authentication")
	})
	l.lead(b.Self())
	until(t, "it hands over", func() bool { leader, _ := l.Leader(); return leader != b.Self().Node })
}

// ofFour is a node with three others, 1 to 3, that do not run. The last one has no vote. Nobody leads,
// so that it asks nobody by itself.
func ofFour(t *testing.T) *Peers {
	on, dir := port(t), t.TempDir()
	f := &Founding{Node: "00000000000000000000000000000001", Address: on.Addr().String(), Now: time.Now()}
	must(t, Found(dir, f))
	l := &log{members: []Member{{f.Node, f.Address, true}}}
	for _, begin := range []string{"1", "2", "3"} {
		l.members = append(l.members, Member{Node: id(begin), Address: "127.0.0.1:" + begin, Voter: begin != "3"})
	}
	return open(t, dir, on, l, nil)
}

// What was heard lately counts and nobody is asked; whoever said nothing for some time is.
func TestAGlanceUsesWhatIsKnown(t *testing.T) {
	p := ofFour(t)
	p.looks.note(id("1"), known{ahead: 2 * time.Second})
	p.looks.note(id("2"), known{away: true})
	p.looks.note(id("3"), known{ahead: -time.Hour}) // has no vote
	if reachable, apart := p.Glance(); reachable != 2 || apart != time.Hour {
		t.Errorf("%d answer, %v apart", reachable, apart)
	}
	// Nobody answers at these addresses, so what is asked is away.
	p.looks.change(id("3"), func(k *known) { k.at = time.Now().Add(-goodFor - time.Second) })
	if reachable, apart := p.Glance(); reachable != 2 || apart != 2*time.Second {
		t.Errorf("after the third said nothing for long: %d answer, %v apart", reachable, apart)
	}
	p.looks.note(id("1"), known{ahead: time.Second})
	if _, apart := p.Glance(); apart != 0 {
		t.Errorf("%v apart, want 0 for a second", apart)
	}
}

// The middle one of the clocks is right. Two clocks do not say whose is wrong.
func TestWhoseClockIsWrong(t *testing.T) {
	p := ofFour(t)
	const at = time.Second
	for _, x := range []struct {
		one, two time.Duration
		want     string
	}{
		{0, 0, ""}, {9 * at, 9 * at, ""}, {11 * at, 12 * at, "11s behind those"}, {-11 * at, -time.Hour, "11s ahead of those"},
		{time.Hour, 0, ""}, {time.Hour, -time.Hour, ""},
	} {
		p.looks.note(id("1"), known{ahead: x.one})
		p.looks.note(id("2"), known{ahead: x.two})
		p.looks.note(id("3"), known{ahead: time.Hour}) // has no vote
		if err := p.MayLead(t.Context()); (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v and %v: %v, want %q", x.one, x.two, err, x.want)
		}
	}
	p.looks.of = nil
	p.looks.note(id("1"), known{away: true})
	p.looks.note(id("2"), known{ahead: time.Hour})
	if err := p.MayLead(t.Context()); err != nil {
		t.Errorf("one is away and has never said its time: %v", err)
	}
	p.looks.note(id("1"), known{ahead: time.Hour})
	p.looks.note(id("1"), known{away: true})
	if err := p.MayLead(t.Context()); err == nil {
		t.Error("one has said its time before it was lost, and it does not count")
	}
}

// A form of entries is written once all have said that they read it, those without a vote too:
// they apply the log as well.
func TestAFormIsWrittenOnceAllReadIt(t *testing.T) {
	p := ofFour(t)
	p.form = 3
	for _, c := range []struct {
		what string
		hear func()
		want int
	}{
		{"nothing is known", func() {}, 1},
		{"two are new", func() { p.looks.note(id("1"), known{form: 3}); p.looks.note(id("2"), known{form: 4}) }, 1},
		{"one says no form", func() { p.looks.note(id("3"), known{}) }, 1},
		{"one reads an older form", func() { p.looks.note(id("3"), known{form: 2}) }, 2},
		{"it is new and asks", func() { p.isAsked(id("3"), question{NowMs: 1, Form: 3}) }, 3},
		{"it is lost", func() { p.looks.note(id("3"), known{away: true}) }, 3},
		{"it is back with the old program", func() { p.looks.note(id("3"), known{form: 1}) }, 1},
	} {
		if c.hear(); p.Announced() != c.want {
			t.Errorf("%s: %d, want %d", c.what, p.Announced(), c.want)
		}
	}
}

// The disk guard counts the second-lowest space of the voters; who does not answer has none.
func TestFreeBytesOfTheVoters(t *testing.T) {
	p := ofFour(t)
	const own = 50
	if got := p.FreeBytes(own); got != own {
		t.Errorf("before it has asked: %d", got)
	}
	away := known{away: true}
	for _, c := range []struct {
		one, two known
		want     int64
	}{
		{known{freeBytes: 10}, known{freeBytes: 70}, 50},
		{known{freeBytes: 10}, known{freeBytes: 20}, 20},
		{known{freeBytes: 60}, known{freeBytes: 70}, 60},
		{away, known{freeBytes: 70}, 50},
		{away, known{freeBytes: 10}, 10},
		{away, away, own},                                         // nothing can be written, and not for want of space
		{known{}, known{freeBytes: math.MaxInt64}, math.MaxInt64}, // one does not tell it
	} {
		p.looks.note(id("1"), c.one)
		p.looks.note(id("2"), c.two)
		p.looks.note(id("3"), known{freeBytes: 1}) // has no vote
		if got := p.FreeBytes(own); got != c.want {
			t.Errorf("%+v, %+v: %d, want %d", c.one, c.two, got, c.want)
		}
	}
	// A node that asks says its time, and nothing of its disk.
	p.looks.note(id("1"), known{freeBytes: 10})
	p.looks.note(id("2"), known{freeBytes: 20})
	p.isAsked(id("1"), question{NowMs: 1})
	if got := p.FreeBytes(own); got != 20 {
		t.Errorf("one has asked since it was asked: %d, want 20", got)
	}
}
