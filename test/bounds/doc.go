// Package bounds holds the built program against what many clients may cost it
// and one another: sessions that only sit there must cost little memory and
// nobody's time; a flood must turn away new work and nothing else; clients that do
// not read, or a few bytes at a time, must fill no memory and be cut; and nobody else may notice. It has no
// code but tests, and no program imports it.
//
// `go test ./test/bounds` opens some hundred idle sessions; with -bounds.idle=10000
// it is the full number.
package bounds
