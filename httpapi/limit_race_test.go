//go:build race

package httpapi

import "time"

// Under the race detector Pebble checks itself at every step and takes twenty
// times as long.
const (
	manyQueues  = 1000
	scrapeLimit = time.Second
)
