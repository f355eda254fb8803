// Package codeqtest gives tests a codeq server in their own process: the real server with its real
// sockets, on a file system in memory and with a clock that stands still until Advance moves it.
//
//	s := codeqtest.New(t)
//	task, err := s.Client.Enqueue(ctx, "mail", "hello", client.Delay(time.Hour))
//	s.Advance(time.Hour) // the task is ready now
//
// Delays, leases, backoff, the grace of a lost session, retention and rates follow the clock.
// Sockets, heartbeats of workers and the waits of HTTP requests follow that of the machine. The ids
// of the tasks are the same in each run.
package codeqtest
