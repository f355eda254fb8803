package server

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// suspended is how long the machine was suspended since the process started. Reading
// CLOCK_BOOTTIME is a system call, which took a tenth of the server's time when every
// message did it. So it is read once a second; Go's monotonic clock, which needs no system
// call, measures the time between.
var suspended struct {
	forNs    atomic.Int64
	askAtNs  atomic.Int64
	bootAtNs atomic.Int64 // CLOCK_BOOTTIME when the monotonic clock stood at 0
}

// suspendedEveryNs is the longest time until a suspension is noticed.
const suspendedEveryNs = int64(time.Second)

// elapsedNs is the time since the start of the process. Unlike Go's monotonic clock it
// includes suspensions of the machine, because a lease ends in real time.
func elapsedNs() int64 {
	awakeNs := int64(time.Since(processStart))
	askAtNs := suspended.askAtNs.Load()
	if awakeNs >= askAtNs && suspended.askAtNs.CompareAndSwap(askAtNs, awakeNs+suspendedEveryNs) {
		noticeSuspension()
	}
	return int64(time.Since(processStart)) + suspended.forNs.Load()
}

// noticeSuspension compares the two clocks. A difference below a millisecond is the time
// between the two readings.
func noticeSuspension() {
	bootNs := boottimeNs()
	awakeNs := int64(time.Since(processStart))
	if suspended.bootAtNs.CompareAndSwap(0, bootNs-awakeNs) {
		return
	}
	suspendedNs := bootNs - awakeNs - suspended.bootAtNs.Load()
	if suspendedNs-suspended.forNs.Load() > int64(time.Millisecond) {
		suspended.forNs.Store(suspendedNs)
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
