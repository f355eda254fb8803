package server

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// besideMemory is what the system counts in addition to the setting memory: the program
	// itself and its stacks.
	besideMemory = 64 << 20
	// blockedThreads bounds the threads that wait for the disk at the same time.
	blockedThreads = 64
)

// warnOfLowLimits logs each limit of the system that can end the process. A Go program
// cannot refuse work at these limits: the runtime ends the process when it cannot make a
// thread, and the system ends it when the memory of the control group is used up.
func (s *Server) warnOfLowLimits() {
	threads := cgroupLimit(os.DirFS("/"), "pids.max")
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) == nil && limit.Cur < uint64(threads) {
		threads = int64(limit.Cur)
	}
	if needed := int64(runtime.GOMAXPROCS(0) + blockedThreads); threads < needed {
		s.o.Log.Warn().Int64("limit", threads).Int64("needed", needed).
			Msg("the limit of threads is low, and the process ends where it can make none: raise it with ulimit -u, or TasksMax= of a systemd unit")
	}
	if memory := cgroupLimit(os.DirFS("/"), "memory.max"); memory < s.o.MemoryBytes+besideMemory {
		s.o.Log.Warn().Int64("limitBytes", memory).Int64("neededBytes", s.o.MemoryBytes+besideMemory).
			Msg("the memory of this control group or container is less than the server may take, and the system ends what takes more: lower memory, or raise the limit")
	}
}

// cgroupLimit is the lowest limit of that name in the visible control groups (version 2) of
// this process; math.MaxInt64 without one.
func cgroupLimit(root fs.FS, file string) int64 {
	lowest := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return lowest // this system has no /proc
	}
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for at := group; ok; at = path.Dir(at) {
			text, err := fs.ReadFile(root, path.Join("sys/fs/cgroup", at, file))
			limit, notNumber := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && notNumber == nil { // "max" is none
				lowest = min(lowest, limit)
			}
			if at == "" || at == "." || at == "/" {
				break
			}
		}
	}
	return lowest
}
