//go:build race

package sim

// raceDetector: everything takes ten times as long, so fewer seeds are run.
const raceDetector = true
