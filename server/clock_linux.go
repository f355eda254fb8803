package server

import "golang.org/x/sys/unix"

// elapsedNs counts from the start of the machine and, unlike Go's monotonic
// clock, goes on while it is suspended: a lease ends in real time.
func elapsedNs() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// Linux has this clock since 2.6.39; without it no deadline is right.
		panic("server: read CLOCK_BOOTTIME: " + err.Error())
	}
	return t.Nano()
}
