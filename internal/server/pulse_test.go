package server

import (
	"testing"
	"time"
)

// Each beat wakes the shards, so a server without work beats, too; one whose shards are gone does not.
func TestPulseIsThatOfTheShards(t *testing.T) {
	x := openSite(t, t.TempDir())
	p := x.server.Pulse()
	if !p.Beat() {
		t.Error("the first beat fails")
	}
	for until := time.Now().Add(patience); !p.Beat(); {
		if time.Now().After(until) {
			t.Fatal("an idle server beats no more")
		}
	}
	x.close()
	p.Beat() // the shards may have made a round before their end
	if p.Beat() {
		t.Error("a server without shards beats")
	}
}
