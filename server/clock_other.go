//go:build !linux

package server

import "time"

// elapsedNs counts from the start of the process. Whether it goes on during a
// suspension is up to the system.
func elapsedNs() int64 { return int64(time.Since(processStart)) }
