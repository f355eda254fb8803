//go:build race

package httpapi

// Under the race detector Pebble checks itself at every step and takes twenty
// times as long.
const manyQueues = 1000
