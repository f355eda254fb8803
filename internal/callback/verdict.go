package callback

import (
	"fmt"
	"time"

	"codeq/wire"
)

// Answer is what came of a call.
type Answer struct {
	// Status is the HTTP status, 0 without an answer; Problem then says why there is none.
	Status  int
	Problem string
	// Refused: the guard did not let the call out.
	Refused bool
	// Stopped: the server stopped, so nothing is known about the endpoint.
	Stopped bool
	// RetryAfter is when the endpoint wants the next call, 0 if it did not say.
	RetryAfter time.Duration
	Took       time.Duration
	// Body is as much of that of the answer as the call keeps; Cut: there is more.
	Body []byte
	Cut  bool
}

// result is that of the callback, for people.
func (a *Answer) result() []byte {
	return fmt.Appendf(nil, `{"status":%d,"ms":%d}`, a.Status, a.Took.Milliseconds())
}

func (a *Answer) succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// isSick reports whether others would fare no better at this endpoint now.
func (a *Answer) isSick() bool {
	return a.Status == 0 && !a.Refused || a.Status >= 500 || a.Status == 408 || a.Status == 425 || a.Status == 429
}

// ladder is how long a callback waits after each failed attempt, give or take a fifth. A queue
// lets none wait for more than a day.
var ladder = [wire.CallbackAttempts - 1]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

const (
	// mostRetryAfter bounds what an endpoint may ask for.
	mostRetryAfter = time.Hour
	// wrongAttempts is how often a callback is posted whose endpoint answers that the request
	// is wrong.
	wrongAttempts = 3
)

// verdict is what becomes of a callback: it is done, dead, or comes again.
type verdict struct {
	done, dead   bool
	afterSeconds int64
	reason       string
}

// judge decides that from an answer and the attempts that failed before. random is from 0 to
// below 1.
func judge(a Answer, failed int, random float64) verdict {
	v := verdict{reason: a.Problem}
	wait := ladder[min(failed, len(ladder)-1)]
	wait += time.Duration((random - 0.5) * 0.4 * float64(wait))
	if a.Status != 0 {
		v.reason = fmt.Sprintf("the endpoint answered %d", a.Status)
	}
	switch s := a.Status; {
	case a.succeeded():
		v.done = true
	case a.Refused || s == 410:
		v.dead = true
	case s == 408 || s == 409 || s == 425 || s == 429 || s == 503:
		if (s == 429 || s == 503) && a.RetryAfter > 0 {
			wait = min(a.RetryAfter, mostRetryAfter)
		}
	case s >= 400 && s < 500:
		v.dead = failed+1 >= wrongAttempts
	case s >= 300 && s < 400:
		v.reason += ", and redirects are not followed"
	}
	v.afterSeconds = int64((wait + time.Second - 1) / time.Second)
	return v
}
