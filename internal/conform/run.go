package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"codeq/client"
	"codeq/internal/auth"
	"codeq/internal/chaos"
	"codeq/internal/testserver"
	"codeq/wire"
)

const (
	// readyFor is how long a driver may take to start.
	readyFor = 2 * time.Minute
	// defaultPatience is how long something may take that must come.
	defaultPatience = 30 * time.Second
	// quietFor is how long a script looks that nothing comes, and mostSlack how much longer if the driver is slow: an SDK has
	// times of its own, such as 5 s until a task goes back that no handler has begun.
	quietFor  = 400 * time.Millisecond
	mostSlack = time.Second
	// lookEach is the pause between two looks at something that has no event.
	lookEach = 20 * time.Millisecond
	// scriptFor is the longest that a script may take.
	scriptFor = 5 * time.Minute
)

// failure ends a script.
type failure struct{ sentence string }

// members are members of a line.
type members map[string]any

// run is one script while it runs. All its methods end the script when what they want does not come.
type run struct {
	ctx     context.Context
	command []string
	// patience is how long something may take that must come.
	patience time.Duration
	// slack is how long the driver took to start. On a loaded machine it is long, and each bound of time grows by it.
	slack  time.Duration
	driver *driver
	// early holds events that were not asked for yet.
	early []event
	// can are the optional parts of the driver.
	can []string
	ids int

	server *testserver.Server
	proxy  *chaos.Proxy
	client *client.Client
	// url is where the driver connects.
	url, token string
	// session is the one that the worker had first.
	session  string
	cleanups []func()
}

// fail ends the script.
func (x *run) fail(format string, args ...any) {
	panic(failure{fmt.Sprintf(format, args...)})
}

// must ends the script over an error of the kit itself or of the server.
func (x *run) must(err error) {
	if err != nil {
		x.fail("%v", err)
	}
}

// after has something done when the script is over.
func (x *run) after(do func()) { x.cleanups = append(x.cleanups, do) }

// start starts the driver.
func (x *run) start() {
	began := time.Now()
	d, err := startDriver(x.ctx, x.command)
	x.must(err)
	x.driver = d
	ready := x.next(readyFor)
	if ready == nil {
		x.fail("the driver printed nothing within %v", readyFor)
	}
	if ready["event"] != "ready" {
		x.fail("the first line of the driver must be the event ready, got %v", ready)
	}
	x.slack = time.Since(began)
	x.patience += x.slack
	list, _ := ready["can"].([]any) // without it there is none
	for _, part := range list {
		x.can = append(x.can, fmt.Sprint(part))
	}
}

// next is the next line of the driver.
func (x *run) next(within time.Duration) event {
	select {
	case e, open := <-x.driver.lines:
		if !open {
			x.must(x.driver.wrong)
			x.fail("the driver ended before the script did")
		}
		return e
	case <-time.After(within):
		return nil
	case <-x.ctx.Done():
		x.fail("the script did not end within %v", scriptFor)
	}
	return nil
}

// want waits for an event with these members; what else comes is kept.
func (x *run) want(kind string, with members) event {
	return x.wantWithin(x.patience, kind, with)
}

func (x *run) wantWithin(within time.Duration, kind string, with members) event {
	for i, e := range x.early {
		if e.fits(ofLine, kind, with) {
			x.early = slices.Delete(x.early, i, i+1)
			return e
		}
	}
	for until := time.Now().Add(within); ; {
		e := x.next(time.Until(until))
		if e == nil {
			x.fail("no event %v came within %v%s", inWords(ofLine, kind, with), within, x.instead())
		}
		if e.fits(ofLine, kind, with) {
			return e
		}
		x.early = append(x.early, e)
	}
}

// instead says what came.
func (x *run) instead() string {
	if len(x.early) == 0 {
		return "; nothing else came"
	}
	var all []string
	for _, e := range x.early[max(0, len(x.early)-5):] {
		all = append(all, fmt.Sprintf("%.300v", e))
	}
	return "; instead came " + strings.Join(all, ", ")
}

// never fails if such an event is there already, or comes within a moment.
func (x *run) never(kind string, with members) {
	for until := time.Now().Add(quietFor + min(x.slack, mostSlack)); ; {
		if i := slices.IndexFunc(x.early, func(e event) bool { return e.fits(ofLine, kind, with) }); i >= 0 {
			x.fail("the event %v must not come", x.early[i])
		}
		e := x.next(time.Until(until))
		if e == nil {
			return
		}
		x.early = append(x.early, e)
	}
}

// The members that have the kind of a line of a driver, and of a frame.
const (
	ofLine  = "event"
	ofFrame = "type"
)

// inWords is a wanted line or frame; member has its kind.
func inWords(member, kind string, with members) string {
	all := maps.Clone(event(with))
	if all == nil {
		all = event{}
	}
	all[member] = kind
	return all.String()
}

// fits reports that a line or a frame is of a kind, which member has, and has these members.
func (e event) fits(member, kind string, with members) bool {
	if e[member] != kind {
		return false
	}
	for name, want := range with {
		if !same(e[name], want) {
			return false
		}
	}
	return true
}

// same compares a member with a value: numbers as numbers, nil with what is absent, false or "".
func same(got, want any) bool {
	switch want := want.(type) {
	case int:
		return got == float64(want) || got == nil && want == 0
	case bool:
		return got == want || got == nil && !want
	case string:
		return got == want || got == nil && want == ""
	case []string:
		said, _ := got.(string) // another type is none of them
		return slices.Contains(want, said)
	}
	return reflect.DeepEqual(got, want)
}

// say sends a command to the driver.
func (x *run) say(do string, with members) {
	line := maps.Clone(with)
	if line == nil {
		line = members{}
	}
	line["do"] = do
	x.must(x.driver.say(line))
}

// answer answers a delivery.
func (x *run) answer(do string, delivery int, with members) {
	all := maps.Clone(with)
	if all == nil {
		all = members{}
	}
	all["delivery"] = delivery
	x.say(do, all)
}

// ask sends a command of a producer and returns its id.
func (x *run) ask(do string, with members) int {
	x.ids++
	line := members{"id": x.ids, "url": x.url, "token": x.token, "waitSeconds": int(x.patience / time.Second)}
	maps.Copy(line, with)
	x.say(do, line)
	return x.ids
}

// worker starts a worker of the queue "a" and waits for its session.
func (x *run) worker(with members) event {
	x.startWorker(with)
	connected := x.want("connected", nil)
	x.session = text(connected["session"])
	return connected
}

func (x *run) startWorker(with members) {
	line := members{"url": x.url, "token": x.token, "commands": []string{"a"}, "window": 1, "leaseSeconds": 30, "name": "kit"}
	maps.Copy(line, with)
	x.say("worker", line)
}

// open starts the server and the proxy before it.
func (x *run) open() { x.openWith(nil) }

func (x *run) openWith(tokens *auth.Tokens) {
	x.serve(testserver.Options{Seed: 1, Tokens: tokens, Version: "conform"})
	proxy, err := chaos.Start(x.server.Addr())
	x.must(err)
	x.proxy = proxy
	x.after(proxy.Close)
	x.url = "http://" + proxy.Addr
}

// serve starts the server, and a client that goes around the proxy.
func (x *run) serve(o testserver.Options) {
	var s *testserver.Server
	var err error
	x.until("a port that was free must be free again", func() bool { // another program may have a connection from it
		s, err = testserver.Start(o)
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	x.must(err)
	x.server = s
	x.after(func() { _ = s.Close() }) // the script has ended
	x.client, err = client.New(s.URL(), client.WithNotices(func(string) {}), client.WithToken(x.token))
	x.must(err)
	x.after(x.client.Close)
	x.url = s.URL()
}

// freeAddr is an address at which nobody listens.
func (x *run) freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	x.must(err)
	defer func() { _ = l.Close() }() // nothing was accepted
	return l.Addr().String()
}

// post makes a task of the queue "a", past the driver.
func (x *run) post(options ...client.EnqueueOption) string {
	return x.postTo("a", map[string]int{"n": 1}, options...)
}

func (x *run) postTo(command string, payload any, options ...client.EnqueueOption) string {
	task, err := x.client.Enqueue(x.ctx, command, payload, options...)
	x.must(err)
	return task.TaskID.String()
}

// task is a task as the server has it.
func (x *run) task(id string) *wire.Task {
	parsed, valid := wire.ParseTaskID(id)
	if !valid {
		x.fail("%q is no id of a task", id)
	}
	task, err := x.client.Task(x.ctx, parsed)
	x.must(err)
	return task
}

// until looks again and again until something holds.
func (x *run) until(what string, holds func() bool) {
	for late := time.Now().Add(x.patience); !holds(); time.Sleep(lookEach) {
		if time.Now().After(late) || x.ctx.Err() != nil {
			x.fail("%s: not within %v", what, x.patience)
		}
	}
}

// becomes waits for a status of a task, and checks how many deliveries and failed attempts it took.
func (x *run) becomes(id string, status wire.Status, deliveries, attempts int) *wire.Task {
	var task *wire.Task
	x.until(fmt.Sprintf("task %s must become %s", id, status), func() bool {
		task = x.task(id)
		return task.Status == status && task.Deliveries == deliveries && task.Attempts == attempts || task.Status.Terminal() && task.Status == status
	})
	if task.Deliveries != deliveries || task.Attempts != attempts {
		x.fail("task %s is %s after %d deliveries and %d failed attempts, want %d and %d", id, task.Status, task.Deliveries, task.Attempts, deliveries, attempts)
	}
	return task
}

// advance moves the clock of the server.
func (x *run) advance(by time.Duration) { x.must(x.server.Advance(x.ctx, by)) }

// stop ends the server, within a time as TERM does; Again starts it.
func (x *run) stop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(x.ctx, grace)
	defer cancel()
	x.must(x.server.Stop(ctx))
}

// works lets the worker do a task from the beginning to its end: the connection is well.
func (x *run) works(delivery int) {
	id := x.post()
	x.want("delivery", members{"task": id, "delivery": delivery})
	x.answer("complete", delivery, members{"result": members{}})
	x.want("settled", members{"delivery": delivery, "ok": true})
	x.becomes(id, wire.StatusCompleted, 1, 0)
}

// close ends everything, and says how the driver ended.
func (x *run) close() (err error) {
	if x.driver != nil {
		err = x.driver.end()
	}
	for _, do := range slices.Backward(x.cleanups) {
		do()
	}
	return err
}

// failedAs is the sentence of a failure, or the panic of anything else.
func failedAs(p any) string {
	f, is := p.(failure)
	if !is {
		panic(p)
	}
	return f.sentence
}
