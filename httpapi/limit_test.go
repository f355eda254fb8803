//go:build !race

package httpapi

import "time"

// A page of so many queues may take so long.
const (
	manyQueues  = 10_000
	scrapeLimit = 100 * time.Millisecond
)
