// Command release builds the program for every system that a release has, and packs each with its
// manual, its completions and the list of what is in it:
//
//	release -root . -out bin/release -version 0.1.0 -commit 0123456789ab -time 1700000000 [-only linux/amd64]
//
// Everything that comes out depends on the sources and these arguments alone, so that others can
// build a release once more and compare: no path, no time of a build, no order of a map. A bill of
// materials is what the linker wrote into the program, so it names what is in that program and
// not what go.mod has for tests. CycloneDX is its form, because the scanners of vulnerabilities
// read it; the package of its makers writes it.
//
// The tool is in a module of its own, so that the program's go.mod names only what the program
// needs. main carries everything; one goroutine runs it.
package main
