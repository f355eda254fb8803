package session

import "testing"

// A client that takes the same all the time has the same bound all the time, also
// where what was measured long ago is given up.
func TestPaceOfASteadyClientStays(t *testing.T) {
	const leaseForMs, everyMs, taskBytes = 60_000, 500, 5_000
	const wanted = taskBytes * leaseForMs / leaseShare / everyMs
	p := &pace{}
	p.sends(taskBytes, leaseForMs, 0) // so that one is always on its way
	for nowMs := int64(everyMs); nowMs <= 10*keepPaceMs; nowMs += everyMs {
		p.sends(taskBytes, leaseForMs, nowMs)
		bound := p.takes(taskBytes, nowMs)
		if nowMs >= paceOverMs && (bound < wanted/2 || bound > wanted*2) {
			t.Fatalf("after %d ms %d bytes may be on their way, want about %d", nowMs, bound, wanted)
		}
	}
}

// What was measured long ago gives way to what a client takes now.
func TestPaceFollowsAClientThatBecomesSlow(t *testing.T) {
	const leaseForMs, fast, slow = 60_000, 50_000, 1_000
	p := &pace{}
	p.sends(fast, leaseForMs, 0)
	bound, nowMs := 0, int64(0)
	take := func(payloadBytes int, forMs int64) {
		for end := nowMs + forMs; nowMs < end; {
			nowMs += 1_000
			p.sends(payloadBytes, leaseForMs, nowMs)
			bound = p.takes(payloadBytes, nowMs)
		}
	}
	take(fast, 2*keepPaceMs)
	take(slow, 5*keepPaceMs)
	if wanted := slow * leaseForMs / leaseShare / 1_000; bound > 2*max(wanted, leastUntakenBytes) {
		t.Errorf("%d bytes may be on their way to a client that has become slow, want about %d", bound, wanted)
	}
}
