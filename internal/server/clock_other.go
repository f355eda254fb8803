//go:build !linux

package server

import "time"

// elapsedNs is the time since the start of the process. The system decides whether it
// includes suspensions of the machine.
func elapsedNs() int64 { return int64(time.Since(processStart)) }
