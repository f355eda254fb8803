//go:build race

package shardactor

// raceDetector: everything takes more than ten times as long, so fewer crash
// clones are taken.
const raceDetector = true
