package server

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// suspended is how long the machine has slept since the process started, as
// far as it is known. Reading CLOCK_BOOTTIME is a system call, which cost a
// tenth of the server's time when every message asked for it, so it is read
// once in a while and Go's monotonic clock, which needs none, does the rest.
var suspended struct {
	forNs    atomic.Int64
	askAtNs  atomic.Int64
	bootAtNs atomic.Int64 // CLOCK_BOOTTIME when the monotonic clock stood at 0
}

// suspendedEveryNs is how long a suspension may stay unnoticed after waking.
const suspendedEveryNs = int64(time.Second)

// elapsedNs counts from the start of the process and, unlike Go's monotonic
// clock, goes on while the machine is suspended: a lease ends in real time.
func elapsedNs() int64 {
	awakeNs := int64(time.Since(processStart))
	askAtNs := suspended.askAtNs.Load()
	if awakeNs >= askAtNs && suspended.askAtNs.CompareAndSwap(askAtNs, awakeNs+suspendedEveryNs) {
		noticeSuspension()
	}
	return int64(time.Since(processStart)) + suspended.forNs.Load()
}

// noticeSuspension compares the two clocks. A difference below a millisecond
// is the time between two readings and no sleep.
func noticeSuspension() {
	bootNs := boottimeNs()
	awakeNs := int64(time.Since(processStart))
	if suspended.bootAtNs.CompareAndSwap(0, bootNs-awakeNs) {
		return
	}
	sleptNs := bootNs - awakeNs - suspended.bootAtNs.Load()
	if sleptNs-suspended.forNs.Load() > int64(time.Millisecond) {
		suspended.forNs.Store(sleptNs)
	}
}

func boottimeNs() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// Linux has this clock since 2.6.39; without it no deadline is right.
		panic("server: read CLOCK_BOOTTIME: " + err.Error())
	}
	return t.Nano()
}
