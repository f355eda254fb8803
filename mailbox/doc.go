// Package mailbox is the bounded queue in front of an actor: many goroutines
// push, one drains.
//
// A Mailbox is one mutex around two lanes, the second of which is divided by owners.
// A push copies its messages behind those that wait, or is refused; it never waits for
// room, so a full mailbox is an answer for whoever asked and not a stopped goroutine.
// Drain exchanges the first lane for an empty one and takes a bounded piece of the
// second, so the mutex is held for a moment whatever the backlog is.
//
// There are three kinds of message. New work has the second lane, and is
// refused first, while a quarter of the mailbox is still free. That quarter,
// and the first lane, are for messages that keep or end work already taken on:
// a message that ends work must not wait behind a flood of new work.
// A backlog of new work that persists, because more comes than is drained, is
// limited by how long it persists: see admission.
// Each push of new work has an owner. Owners take turns when a drain takes it, and while
// several have some that waits none may have more than half of what may wait, and a drain
// takes large pushes in parts.
//
// Control messages share the first lane and are never refused: each has a Slot
// of its own, so there are never more of them than slots, and they take nothing
// from the limits.
//
// Push, PushSlot, Close and Figures may be called from any goroutine, Drain
// and Wake from the one that owns the backlog. The package must not know what
// a message is, nor who drains.
package mailbox
