// Package callback posts the outcomes of tasks to their webhooks, and the tasks of a queue with
// a target to that: it is the worker of these queues and of wire.CallbackQueue of every tenant,
// within the server.
//
// A Worker stands between the shards and the observer of their events. The first callback
// of a tenant gives the tenant a consumer, which stays until the server stops; a queue with a
// target has one of its own. Whoever
// delivers a grant, or an answer of an endpoint, takes the lock of the Worker and decides
// what is next; the Worker has no goroutine and no clock of its own, so a simulator may
// run it. A Poster makes the requests, each in a goroutine, under a Guard that refuses
// addresses which are not public.
//
// The package reads no store: all it knows is in what is granted to it.
package callback
