//go:build !race

package shardactor

// raceDetector: the full number of crash clones is taken.
const raceDetector = false
