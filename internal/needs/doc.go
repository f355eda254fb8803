// Package needs finds what a person should look at: queues without a worker, queues that grow,
// dead letters, pauses, tasks that were set aside, a full disk. Each need is a sentence.
//
// The package must not know who watches, and it reads nothing: its caller says what there is.
package needs
