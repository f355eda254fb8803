// Package client is the Go SDK of codeq, a durable task queue: it enqueues
// tasks, waits for their results and works on them.
//
// # Begin
//
// A Client knows one server. It dials nothing before it is used, and one is
// enough for a process:
//
//	c, err := client.New("127.0.0.1:8080", client.WithToken(os.Getenv("CODEQ_TOKEN")))
//
// # Enqueue
//
// A task is a command, which names the queue, and a payload, which is anything
// that JSON can say:
//
//	task, err := c.Enqueue(ctx, "resize", Photo{File: "owl.png", Width: 300}, client.Priority(5))
//
// When Enqueue returns, the task is on the server's disk. Priority, Delay,
// RunAt, MaxAttempts and Key say more about it.
//
// If the connection breaks before the answer, nobody knows whether the task
// exists, and the error is ErrOutcomeUnknown. To be free of that question give
// the task a Key, a name that says what it is for, like "order-1234": Enqueue
// then repeats a request whose answer was lost, and the same key never makes a
// second task.
//
// Who posts thousands of tasks opens a Session with Client.Dial. It has the same
// Enqueue, carries many requests at a time over one WebSocket and finds its
// server again.
//
// # Wait for a result
//
// ResultOf waits until the task has ended, for as long as ctx allows, and
// decodes what the worker returned:
//
//	thumb, err := client.ResultOf[Thumbnail](ctx, c, task.TaskID)
//
// A task that failed is a *TaskError with the worker's reason. Client.Result is
// the same with the whole record.
//
// # Work
//
// A worker is a function from payload to result:
//
//	resize := func(ctx context.Context, photo Photo) (Thumbnail, error) { … }
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := client.Work(ctx, c, "resize", resize, client.Window(8))
//
// The result must be a JSON object, so a handler returns a struct or a map. An
// error has the task tried again later, Permanent(err) fails it for good, and
// RetryIn(d, err) says when to try again. Work keeps the leases of what runs,
// connects again when the connection breaks, and when ctx ends it waits for
// what runs before it returns: pass it the context of the signals, as above.
//
// Two things are the handler's own. It may run twice for one task, if a worker
// dies after the work and before the answer, so doing it again must do no harm.
// And it should watch its context, which is cancelled when the task is no
// longer this worker's; context.Cause says why.
//
// A program that takes a task now and then, from cron perhaps, asks for one
// instead, and says what became of it:
//
//	claimed, err := c.Claim(ctx, client.ClaimOptions{Commands: []string{"resize"}, Wait: 30 * time.Second})
//	for _, task := range claimed {
//		_, err = task.End(ctx, client.Complete(resized))
//	}
//
// A handler that can stop early watches Draining and returns ErrStopping. One
// that cannot even begin returns CannotStart(err). Both hand the task back at no
// cost; the second makes the worker take nothing for a while.
//
// # Errors
//
// What the server refuses is a *wire.Error, whose Code never changes and whose
// sentence says what would be right. When nothing could be sent, the error is an
// *UnreachableError that says why: nobody listens, the certificate is not
// trusted, http was spoken to a port of https. The sentinels are found with
// errors.Is.
//
// What is tried again, after what, and for how long is one table, tries. A wait
// for a result or a task goes on until its own time is over, also when the server
// is not there yet, restarts, or a proxy answers for it. Work, Dial and Enqueue with
// a Key wait for a server, too; with WithoutWaiting none of them does. Redirects are followed if they are 307 or
// 308, to https but never back to http, and the token goes to no other host.
//
// # Below
//
// Client.EnqueueRequest, Client.ResultWithin, Session.EnqueueAsync and Worker are the same in the
// protocol's own terms, for programs that pass bytes through, take several
// commands or decide about each outcome themselves.
//
// A Session and a Worker are each one goroutine, the loop, that owns all their
// state; there is no lock. Around a live socket stand two more, one that reads
// and one that writes, and a third while a new socket is dialled. A loop never
// waits for the network, and each of them is gone when Close, Run or Work
// returns. Methods of exported types may be called from any goroutine;
// callbacks and hooks run on the loop and must not block.
//
// The package imports wire and knows nothing of the server's packages, of flags
// or of terminals. It never compares its clock with the server's: a lease is
// over when the server says so.
//
// It is one package because programs import the SDK by one name.
package client
