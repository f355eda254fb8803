package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// permanentError is an error that every other attempt would meet.
type permanentError struct{ error }

// Unwrap is the error that Permanent was given.
func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error of a handler as permanent: the task ends FAILED with the text of
// the error and is not tried again. The mark survives wrapping. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// retryError is an error with the delay until the next attempt.
type retryError struct {
	error
	delay time.Duration
}

// Unwrap is the error that RetryIn was given.
func (e retryError) Unwrap() error { return e.error }

// RetryIn marks an error of a handler: the task is tried again after delay, rounded up to
// whole seconds, in place of the backoff of its queue. It counts as a failed attempt, as
// any error does. The mark survives wrapping. RetryIn of nil is an error, too: a handler
// returns it if the time of its task has not come.
func RetryIn(delay time.Duration, err error) error {
	if err == nil {
		err = fmt.Errorf("the handler asked for another try in %s", delay)
	}
	return retryError{err, delay}
}

// notStartedError is an error from before the work.
type notStartedError struct{ error }

// Unwrap is the error that CannotStart was given.
func (e notStartedError) Unwrap() error { return e.error }

// CannotStart marks an error that kept a handler from starting and is not the task's: a
// full disk, no descriptors, a database that is not there. The task is handed back and no
// attempt is counted. Work takes no task for a pause, which doubles from 1 s to 60 s while
// this goes on, and the notices say why. The mark survives wrapping. CannotStart(nil) is
// nil.
func CannotStart(err error) error {
	if err == nil {
		return nil
	}
	return notStartedError{err}
}

// outcomeOf is the outcome for what a handler returned. If the handler gives up because
// the worker stops, its task has not failed.
func outcomeOf(ctx context.Context, result any, err error) Outcome {
	var permanent permanentError
	var later retryError
	var unbegun notStartedError
	switch {
	case err == nil:
		return completion(result)
	case errors.As(err, &permanent):
		return Fail(err.Error())
	case errors.As(err, &later):
		return NackAfter(err.Error(), later.delay)
	case errors.As(err, &unbegun):
		return NotStarted(err.Error())
	case errors.Is(err, ErrStopping), errors.Is(context.Cause(ctx), ErrStopping):
		return Stopped()
	}
	return Nack(err.Error())
}

// completion completes with a result; null becomes the empty object.
func completion(result any) Outcome {
	encoded, err := encode(result)
	if err != nil {
		return Nack("encode result: " + err.Error())
	}
	if string(encoded) == "null" {
		encoded = []byte("{}")
	}
	return Complete(encoded)
}

// checkResultType refuses types whose values are never JSON objects, before the first
// task is done in vain.
func checkResultType(result reflect.Type) error {
	if result.Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	switch result.Kind() {
	case reflect.Struct, reflect.Map, reflect.Interface:
		return nil
	case reflect.Pointer:
		return checkResultType(result.Elem())
	}
	return fmt.Errorf("a result is a JSON object: a handler must return a struct or a map, not %s", result)
}
