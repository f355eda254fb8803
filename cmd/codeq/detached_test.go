package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// jammed is an output that takes nothing while it is shut, and then all.
type jammed struct {
	*safeBuffer
	shut chan struct{} // nil while it is open
	err  error         // of the next write
}

func (j *jammed) Write(p []byte) (int, error) {
	if j.shut != nil {
		<-j.shut
	}
	if err := j.err; err != nil {
		j.err = nil
		return 0, err
	}
	return j.safeBuffer.Write(p)
}

// What was lost is said once, before the first line that comes out behind it, and each
// time only what was lost since.
func TestLostLinesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &jammed{safeBuffer: newBuffer()}
		s := newDetachedWriter(out)
		say := func(lines int) {
			for range lines {
				fmt.Fprintln(s, "a line")
			}
			synctest.Wait()
		}
		want := func(what string, wrote int, notices ...string) {
			t.Helper()
			said := out.String()
			if n := strings.Count(said, "a line\n"); n != wrote {
				t.Errorf("%s: %d lines came out, want %d", what, n, wrote)
			}
			if n := strings.Count(said, "were lost"); n != len(notices) {
				t.Errorf("%s: it says %d times that lines were lost, want %d", what, n, len(notices))
			}
			for _, notice := range notices {
				has(t, said, "codeq: "+notice+" lines were lost because nobody read them\na line\n")
			}
		}
		all := 3
		say(all)
		want("nothing is lost", all)
		for round, lost := range []int{7, 5} {
			out.shut = make(chan struct{})
			say(1) // stands in the write
			say(maxQueuedWrites + lost)
			close(out.shut)
			synctest.Wait()
			say(3)
			all += 1 + maxQueuedWrites + 3
			want(fmt.Sprint("jam ", round), all, []string{"7", "5"}[:round+1]...)
		}
		out.shut, out.err = nil, errTooLarge // any
		say(3)
		want("a write fails", all+2, "7", "5", "1")
		s.end()
		if n := s.lost.Load(); n != 13 {
			t.Errorf("%d lines were lost in all, want 13", n)
		}
	})
}
