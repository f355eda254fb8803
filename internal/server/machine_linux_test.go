package server

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestN14ControlGroupsAreAskedForTheirLimits(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"no proc":     {fstest.MapFS{}, math.MaxInt64},
		"version 1":   {fstest.MapFS{"proc/self/cgroup": file("8:pids:/a\n0::/\n")}, math.MaxInt64},
		"none":        {fstest.MapFS{"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/pids.max": file("max\n")}, math.MaxInt64},
		"its own":     {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/pids.max": file("40\n"), "sys/fs/cgroup/a/pids.max": file("50\n")}, 40},
		"one above":   {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/pids.max": file("40\n"), "sys/fs/cgroup/a/pids.max": file("30\n")}, 30},
		"a container": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/pids.max": file("20\n")}, 20},
	} {
		if got := cgroupLimit(c.root, "pids.max"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
