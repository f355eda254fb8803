//go:build !race

package sim

// raceDetector: the full number of seeds is run.
const raceDetector = false
