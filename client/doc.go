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
// A task has a command, which names its queue, and a payload, which is any JSON
// value:
//
//	task, err := c.Enqueue(ctx, "resize", Photo{File: "owl.png", Width: 300}, client.Priority(5))
//
// When Enqueue returns, the task is on the server's disk. The options Priority,
// Delay, RunAt, Timeout, TTL, ExpiresAt, MaxAttempts and Key say more about it.
//
// If the connection breaks before the answer, nobody knows whether the task
// exists, and the error is ErrOutcomeUnknown. A task with a Key, such as
// "order-1234", does not have this problem: Enqueue repeats a request whose answer
// was lost, and the same key never makes a second task.
//
// EnqueueBatch posts up to 1,000 tasks in one request. A program that posts thousands of tasks opens a Session with Client.Dial. A
// Session has the same Enqueue, carries many requests at a time over one WebSocket,
// and reconnects by itself.
//
// # Wait for a result
//
// ResultOf waits until the task has ended, for as long as ctx allows, and
// decodes what the worker returned:
//
//	thumb, err := client.ResultOf[Thumbnail](ctx, c, task.TaskID)
//
// If the task failed, the error is a *TaskError with the worker's reason.
// Client.Result returns the whole record.
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
// The result must be a JSON object, so a handler returns a struct or a map. If the
// handler returns an error, the server tries the task again later; Permanent(err)
// fails it for good, and RetryIn(d, err) says when to try again. Work renews the
// leases of running tasks and reconnects. When ctx ends, it waits for the running
// handlers before it returns: pass it the context of the signals, as above.
//
// A handler may run twice for one task, if a worker dies after the work and before
// the answer: the second run must do no harm. A handler should watch its context,
// which is cancelled when the task no longer belongs to this worker; context.Cause
// says why.
//
// One worker can take tasks of several commands: Handle adds a handler for each to Handlers, Use
// puts something around all of them, and WorkAll is Work for them.
//
// A program that takes a task now and then, such as a cron job, claims one and ends
// it:
//
//	claimed, err := c.Claim(ctx, client.ClaimOptions{Commands: []string{"resize"}, Wait: 30 * time.Second})
//	for _, task := range claimed {
//		_, err = task.End(ctx, client.Complete(resized))
//	}
//
// A handler that can stop early watches Draining and returns ErrStopping. A handler
// that cannot start returns CannotStart(err). Both hand the task back and count no
// attempt; after the second the worker takes no task for a pause.
//
// # Watch
//
// Watch tells what happens as it happens, over one WebSocket: the figures of queues, the
// life of a task, each transition, the sessions. It reconnects, and says what it missed:
//
//	for news, err := range c.Watch(ctx, client.QueueWatch{Commands: []string{"billing.*"}}) {
//
// # Errors
//
// If the server refuses a request, the error is a *wire.Error: its Code is for
// programs and never changes, its Sentence says what would be right. If nothing
// could be sent, the error is an *UnreachableError that says why: nobody listens, the
// certificate is not trusted, the client spoke http to a port of https. Test for the
// sentinels with errors.Is.
//
// A wait for a result or a task goes on until its own time is over, also while the
// server is not there yet, restarts, or a proxy answers in its place. Work, Dial and
// Enqueue with a Key wait for a server, too. With WithoutWaiting none of them does
// before the first contact. The client follows redirects with status 307 and 308,
// never from https to http, and sends the token to no other host or port.
//
// # Protocol
//
// Client.EnqueueRequest, Client.ResultWithin, Session.EnqueueAsync and Worker use the
// terms of the protocol. They are for programs that pass bytes through, take tasks of
// several commands, or choose each outcome themselves.
//
// # Goroutines
//
// Methods of exported types may be called from any goroutine. A Session and a Worker
// each have one goroutine, the loop, that owns their state without a lock; that
// of a watch runs on the goroutine of the iteration. Each live socket has two more, a
// reader and a writer, and one dials while there is no socket.
// The loop never waits for the network. Callbacks and hooks run on the loop and must
// not block. All of these goroutines have ended when Close, Run or Work returns.
//
// The package imports wire and nothing of the server. It never compares its clock with
// the server's: a lease ends when the server says so.
//
// It is one package because programs import the SDK by one name, and because requests,
// sessions, workers and watches share one table of retries.
package client
