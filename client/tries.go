package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codeq/wire"
)

// fate is how a try ended that brought no answer of success. Each is one bit, so that the
// table below can hold sets of them.
type fate uint16

const (
	// late: the server waited for the time of the request, and there is nothing yet.
	late fate = 1 << iota
	// putOff: refused for now and certainly not done. The codes overloaded,
	// rate_limited and storage_full, and any 429.
	putOff
	// away: the same with the code draining, of a server that starts or stops.
	away
	// internal: refused with the code internal or not_leader, which leave open what was done.
	internal
	// refused: any other code.
	refused
	// unreached: nothing was sent. No address, no connection, no TLS handshake, or
	// a connection that ended before the first byte of the request.
	unreached
	// mistrusted: nothing was sent, because the certificate was not accepted or
	// one side spoke TLS and the other did not.
	mistrusted
	// broken: sent, and the connection ended before an answer, or none came in time.
	broken
	// cutShort: sent, and an answer began and broke off.
	cutShort
	// gateway: a status from 500 on without a code, as of a proxy that has no answer of
	// the server.
	gateway
	// foreign: any other status without a code.
	foreign
	// garbled: a 2xx that codeq does not send.
	garbled
	// moved: a redirect that must not be followed; see sentOn.
	moved

	everything = moved<<1 - 1
	// inDoubt are those after which the server may have done what was asked.
	inDoubt = internal | broken | cutShort | gateway | garbled
	// passing are those that end when the server is there and well.
	passing = inDoubt&^garbled | away | unreached
)

// verb is the purpose of a try.
type verb int

const (
	once          verb = iota // a second time changes something again: a task without a key, a replay by id
	harmless                  // reads, and changes that are the same when they are done twice
	keyed                     // a task with a key
	keyedInDoubt              // the same after a try that may have made it
	waitResult                // waits for a result
	waitReady                 // waits for a server that hands out work
	waitTask                  // waits for a task to claim
	firstLink                 // opens a session or starts a worker
	producerLink              // opens a lost session again
	workerLink                // connects a worker again, which may have work in hand
	sessionFrame              // a task without a key, over a session
	harmlessFrame             // a task with a key or a cancel over a session; outcomes, heartbeats and subscriptions of a worker
)

// tries is the one place that decides what is tried again: for each verb the fates after
// which there is another try. After any other fate the error of the try is the answer.
//
//	verb           tried again after                                            for how long
//	once           nothing
//	harmless       nothing: whoever called may do it again
//	keyed          away, unreached, internal, broken, cutShort, gateway         until ctx ends
//	keyedInDoubt   the same, putOff                                             until ctx ends
//	waitResult     the same, putOff, late                                       its own time
//	waitReady      the same, putOff                                             its own time
//	waitTask       the same, putOff, late, but not cutShort                     its own time
//	firstLink      the same as keyedInDoubt                                     until ctx ends, or GiveUpAfter
//	producerLink   everything but refused                                       GiveUpAfter
//	workerLink     everything                                                   until it is stopped
//	sessionFrame   putOff, away                                                 while the session lasts
//	harmlessFrame  putOff, away, internal                                       while the session lasts
//
// So every wait is also a wait for a server that is not there yet. A client made with
// WithoutWaiting waits only after it has reached its server; see Client.again.
//
// A claim is not repeated after cutShort: there was a task in that answer, and a second
// claim would take another one while the first waits for the end of its lease. It is
// repeated after broken and gateway: if the connection ends before the answer is written,
// the server takes the task back at once. Only an answer that a proxy loses strands a task,
// and a notice says so.
//
// A request that changes something and is not tried again ends with ErrOutcomeUnknown and a
// remedy after the fates of inDoubt, except internal; see call.unsure.
//
// The function pause gives the pauses between tries. A lost link is dialled again whatever
// ended it: the meaning of a close code such as 4401 comes as a refusal of the next attempt.
var tries = [...]fate{
	once:          0,
	harmless:      0,
	keyed:         passing,
	keyedInDoubt:  passing | putOff,
	waitResult:    passing | putOff | late,
	waitReady:     passing | putOff,
	waitTask:      passing&^cutShort | putOff | late,
	firstLink:     passing | putOff,
	producerLink:  everything &^ refused,
	workerLink:    everything,
	sessionFrame:  putOff | away,
	harmlessFrame: putOff | away | internal,
}

// again reports whether another try is made after that error.
func (v verb) again(err error) bool { return tries[v]&fateOf(err) != 0 }

// again is that of the verb, except that a client made with WithoutWaiting does not wait
// for a server that it has not reached yet.
func (c *Client) again(v verb, err error) bool {
	if c.impatient && !c.reached.Load() && fateOf(err)&(late|putOff|away) == 0 {
		return false
	}
	return v.again(err)
}

// after is the verb of the next try after one that ended so.
func (v verb) after(how fate) verb {
	if v == keyed && how&inDoubt != 0 {
		return keyedInDoubt
	}
	return v
}

// failed is the error of a try with its fate.
type failed struct {
	error
	how fate
	// after is the pause that the answer asked for, 0 if it asked for none.
	after time.Duration
}

// Unwrap is the error itself.
func (f *failed) Unwrap() error { return f.error }

// Is reports what the fate says to programs.
func (f *failed) Is(target error) bool {
	return target == ErrRedirected && f.how == moved || target == ErrNotCodeq && f.how&(gateway|foreign|garbled) != 0
}

// fateOf is the fate of a try that returned err; 0 for nil.
func fateOf(err error) fate {
	if err == nil {
		return 0
	}
	var f *failed
	if errors.As(err, &f) {
		return f.how
	}
	var refusal *wire.Error
	if !errors.As(err, &refusal) {
		return broken // a session that ended before its welcome
	}
	switch refusal.Code {
	case wire.CodeResultNotFound:
		return late
	case wire.CodeDraining:
		return away
	case wire.CodeOverloaded, wire.CodeRateLimited, wire.CodeStorageFull, wire.CodeAuthUnavailable:
		return putOff
	case wire.CodeInternal, wire.CodeNotLeader:
		return internal
	}
	return refused
}

// Unanswered reports whether err means that the server gave no answer and may give one
// later: it was not reached, the connection ended, or a proxy answered in its place. A
// certificate that is not trusted is another error. It may be called from any goroutine.
func Unanswered(err error) bool {
	var f *failed
	return errors.As(err, &f) && f.how&(putOff|away|unreached|broken|cutShort|gateway) != 0
}

// maxAdvice bounds the pause that a server can ask for.
const maxAdvice = 10 * maxBackoff

// pause is the wait after a number of failures in a row, the last of which took a time: the
// backoff from its start, or longer if its answer asked for that.
func pause(failures int, took time.Duration, err error) time.Duration {
	var advice time.Duration
	var refusal *wire.Error
	var f *failed
	switch {
	case errors.As(err, &refusal):
		advice = time.Duration(refusal.RetryAfterSeconds) * time.Second
	case errors.As(err, &f):
		advice = f.after
	}
	return max(backoff(failures)-took, min(advice, maxAdvice))
}

// waitForever is longer than any program runs.
const waitForever = 100 * 365 * 24 * time.Hour

// sayEvery is the time after which people are told again that something is still tried.
const sayEvery = 30 * time.Second

// teller tells people what holds a request up: at once, and then each sayEvery.
type teller struct{ last time.Time }

func (t *teller) say(c *Client, what string) {
	if time.Since(t.last) >= sayEvery {
		t.last = time.Now()
		c.notice(what)
	}
}

// persist calls try until the table says that its error is final, until ctx ends, or until
// waitFor is over; try gets the rest of waitFor. After a long try the next one comes at once,
// unless its answer asks for a pause. The error says what happened last.
func (c *Client) persist(ctx context.Context, v verb, waitFor time.Duration, try func(left time.Duration) error) error {
	began := time.Now()
	until := began.Add(waitFor)
	var told teller
	for failures := 0; ; began = time.Now() {
		err := try(until.Sub(began))
		v = v.after(fateOf(err))
		took := time.Since(began)
		switch {
		case err == nil, ctx.Err() != nil, !c.again(v, err), !time.Now().Before(until):
			return c.last(ctx, v, waitFor, err)
		case fateOf(err) == late && took >= time.Second/2:
			failures = 0
			continue
		case fateOf(err) != late:
			told.say(c, inWords(err)+"; it is tried again")
		}
		rest := min(pause(failures, took, err), time.Until(until))
		if cause := sleep(ctx, rest); cause != nil {
			return c.last(ctx, v, waitFor, fmt.Errorf("%w; what happened last: %s", cause, inWords(err)))
		}
		failures++
	}
}

// last is the error for the caller after the last try.
func (c *Client) last(ctx context.Context, v verb, waitFor time.Duration, err error) error {
	var refusal *wire.Error
	switch {
	case err == nil:
		return nil
	case v == keyedInDoubt && errors.As(err, &refusal) && refusal.Code == wire.CodeIdempotencyConflict:
		return err
	case v == keyedInDoubt:
		return outcomeUnknown(err)
	case ctx.Err() == nil && waitFor > 0 && c.again(v, err) && fateOf(err) != late:
		return fmt.Errorf("the wait of %s is over; what happened last: %w", waitFor, err)
	}
	return err
}

// inWords is the sentence of an error for people: a refusal without its code.
func inWords(err error) string {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Sentence
	}
	return err.Error()
}

// sleep waits for delay, or until ctx ends, and then returns its cause.
func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
