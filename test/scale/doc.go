// Package scale measures what must not grow with the backlog: reading figures,
// taking a task, listing a page and starting again, beside few tasks and beside
// many, against the built server. It holds tests only. `make scale` runs it with
// a million ready and a million delayed tasks in a thousand queues and shows a
// table; the form in the suite is small and checks the answers alone, because a
// time on somebody's machine is no property of the program. `make claims` measures
// whether taking from a short queue becomes dearer with all that passed through it,
// `make bulk` how long it takes to cancel a few of very many tasks by filter,
// `make pages` the figures and lists that people look at, `make removal` what it costs that ended tasks are removed, and whether their
// space comes back, `make sizes` what a task takes on the disk, `make cluster-bench` what three nodes take beside one, and how long clients wait for
// the next leader.
//
// Everything runs on the goroutine of its test but the posting of the backlog.
// The package knows only the public protocol.
package scale
