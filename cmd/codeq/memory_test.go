package main

import (
	"runtime/debug"
	"testing"

	"github.com/rs/zerolog"
)

// TestMemoryIsALimitThatTheBallastDoesNotCount also keeps the two variables of Go
// in charge.
func TestMemoryIsALimitThatTheBallastDoesNotCount(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer func() { ballast = nil; debug.SetMemoryLimit(was) }()
	const memory = 128 << 20
	for _, c := range []struct {
		name, limit, percent string
		wantBallast          int
		wantLimit            int64
	}{
		{"alone", "", "", memory / 8, memory + memory/8},
		{"GOGC", "", "50", 0, memory},
		{"GOMEMLIMIT", "1GiB", "", 0, 7 << 30},
		{"both", "1GiB", "50", 0, 7 << 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.limit)
			t.Setenv("GOGC", c.percent)
			ballast = nil
			debug.SetMemoryLimit(7 << 30)
			var s serveCmd
			s.Memory = memory
			if err := s.limitMemory(zerolog.Nop()); err != nil {
				t.Fatal(err)
			}
			if got := debug.SetMemoryLimit(-1); got != c.wantLimit || len(ballast) != c.wantBallast {
				t.Errorf("limit %d, ballast %d, want %d and %d", got, len(ballast), c.wantLimit, c.wantBallast)
			}
		})
	}
}
