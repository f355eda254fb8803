// Package lease holds the deliveries that are in progress in one shard: which
// task, under which token, until when, and for which session.
//
// A Table is owned by the goroutine of its shard and has no lock. It answers
// three questions without a scan: what is known of a task (a map by id), whose
// lease ends next (a heap in which an extension or an end costs a logarithm), and
// what is in flight to a session (a list through the entries, in the order in which
// they came to the session).
//
// The package must not know the time or what follows when a lease ends. Times come as
// arguments, and an entry that is due stays in the table until its owner moves or
// removes it.
package lease
