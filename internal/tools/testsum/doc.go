// Command testsum reads `go test -json` on standard input and prints what a
// person wants of it: one line per package, the output of what failed, and at
// the end "N passed, N failed" alone on a line. It counts test functions, not
// their sub-tests; a package that does not build or dies counts as a failure.
// A test that runs twice, short and long, counts once, by its worst run.
//
// It exits 1 when anything failed or when nothing ran at all, so that a run
// without tests can never be taken for a green one.
package main
