// Package bounds holds the built program against what many clients may cost it
// and one another: sessions that only sit there must cost little memory and
// nobody's time. It has no code but tests, and no program imports it.
//
// `go test ./bounds` opens some hundred idle sessions; with -bounds.idle=10000
// it is the full number.
package bounds
