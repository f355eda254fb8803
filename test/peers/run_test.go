package main

import (
	"strings"
	"testing"
)

// A ledger that cannot fail proves nothing: each kind of mistake is told.
func TestEveryMistakeIsTold(t *testing.T) {
	for mistake, change := range map[string]func(r *run) error{
		"":          func(*run) error { return nil },
		"lost":      func(r *run) error { r.ledger.next.Add(1); r.ledger.confirmed.Add(1); return nil },
		"again":     func(r *run) error { return r.ledger.deliver(payload(3)) },
		"nobody":    func(r *run) error { return r.ledger.deliver(payload(10)) },
		"posted":    func(r *run) error { return r.ledger.deliver(append(payload(3), 'x')) },
		"confirmed": func(r *run) error { r.ledger.confirmed.Add(-1); return nil },
	} {
		r := newRun(&settings{}, &way{batch: 1}, nil, nil)
		for n := range int64(10) {
			if !r.reserve(t.Context()) {
				t.Fatal("there is no room")
			}
			r.ledger.next.Add(1)
			if err := r.ledger.deliver(payload(n)); err != nil {
				t.Fatal(err)
			}
			r.ledger.confirmed.Add(1)
			r.ledger.complete(1)
		}
		err := change(r)
		if err == nil {
			err = r.verdict()
		}
		if (err == nil) != (mistake == "") || err != nil && !strings.Contains(err.Error(), mistake) {
			t.Errorf("%q: %v", mistake, err)
		}
	}
}

func TestRatiosAreOfOneRound(t *testing.T) {
	codeq := way{figures: []figure{{perSecond: 100}, {perSecond: 10}, {perSecond: 1000}}}
	other := way{figures: []figure{{perSecond: 50}, {perSecond: 5}, {perSecond: 2000}}}
	if got := other.ratio(&codeq); got != 0.5 {
		t.Errorf("the median ratio is %v, want 0.5", got)
	}
}
