package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// permanentError is an error that no other try would avoid.
type permanentError struct{ error }

// Unwrap is the error that Permanent was given.
func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error of a handler as one that would come again: the task
// FAILED for good, with the error's text, and is not tried again. The mark
// survives wrapping. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// retryError is an error with a time for the next try.
type retryError struct {
	error
	delay time.Duration
}

// Unwrap is the error that RetryIn was given.
func (e retryError) Unwrap() error { return e.error }

// RetryIn has a task tried again after that long, rounded up to whole seconds,
// instead of after what the server's policy says. It counts as a failed
// attempt like any error. The mark survives wrapping. A nil error is another
// try too, for a task whose time has not come.
func RetryIn(delay time.Duration, err error) error {
	if err == nil {
		err = fmt.Errorf("the handler asked for another try in %s", delay)
	}
	return retryError{err, delay}
}

// notStartedError is an error that came before the work.
type notStartedError struct{ error }

// Unwrap is the error that CannotStart was given.
func (e notStartedError) Unwrap() error { return e.error }

// CannotStart marks an error that kept a handler from beginning and says nothing
// about the task: a full disk, no descriptors, a database that is not there. The
// task is handed back, which costs it nothing, and Work takes no other for a
// pause, 1 s at first and up to 60 s if it goes on; it tells the notices why.
// The mark survives wrapping. nil stays nil.
func CannotStart(err error) error {
	if err == nil {
		return nil
	}
	return notStartedError{err}
}

// outcomeOf turns what a handler returned into the end of its delivery. A
// handler that gives up because the worker stops has not failed at its task.
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

// completion completes with a result; nothing becomes the empty object.
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

// checkResultType refuses the types whose values are certainly no JSON objects,
// before the first task is done for nothing.
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
