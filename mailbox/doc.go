// Package mailbox is the bounded queue in front of an actor: many goroutines
// push, one drains.
//
// A Mailbox is one mutex around one slice. A push copies its messages behind
// those that wait, or is refused; it never waits for room, so a full mailbox is
// an answer for whoever asked and not a stopped goroutine. Drain takes all that
// waits by exchanging the slice for an empty one, so the mutex is held for a
// moment whatever the backlog is.
//
// Three kinds of message share the order. New work is refused first, while a
// quarter of the mailbox is still free. That quarter is for messages that keep
// or end work already taken on. Control messages are never refused: each has a
// Slot of its own, so there are never more of them than slots, and they take
// nothing from the limits.
//
// Push, PushSlot, Close and Figures may be called from any goroutine, Drain
// and Wake from the one that owns the backlog. The package must not know what
// a message is, nor who drains.
package mailbox
