package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"codeq/wire"
)

// Handlers are the handlers of one worker that takes tasks of several commands. The zero value has
// none. Fill it before a worker uses it; after that it may be used from any goroutine.
type Handlers struct {
	of     map[string]Handler
	around []func(Handler) Handler
	err    error
}

// Handle adds the handler of a command; see Work for what it may return. A second handler of one
// command, and one whose result can be no JSON object, is an error of WorkAll. The command
// wire.AllCommands is for tasks that have no handler of their own.
func Handle[T, R any](h *Handlers, command string, handler func(ctx context.Context, payload T) (R, error)) {
	err := checkResultType(reflect.TypeFor[R]())
	if _, twice := h.of[command]; twice && err == nil {
		err = fmt.Errorf("the command %s has two handlers", command)
	}
	if h.of == nil {
		h.of = make(map[string]Handler)
	}
	h.err = errors.Join(h.err, err)
	h.of[command] = typed(handler)
}

// typed is a handler that decodes payloads and encodes results.
func typed[T, R any](handler func(ctx context.Context, payload T) (R, error)) Handler {
	return func(ctx context.Context, d Delivery) Outcome {
		var payload T
		if err := json.Unmarshal(d.Task.Payload, &payload); err != nil {
			return Nack("the payload does not fit the handler: " + err.Error())
		}
		result, err := handler(ctx, payload)
		return outcomeOf(ctx, result, err)
	}
}

// Use puts something around every handler, for logs, times and traces: around gets the handler and
// returns another one, which calls it. What was put first is outermost.
func (h *Handlers) Use(around ...func(Handler) Handler) { h.around = append(h.around, around...) }

// Commands are the commands that have a handler, sorted.
func (h *Handlers) Commands() []string { return slices.Sorted(maps.Keys(h.of)) }

// Handler is the handler of a Worker: it runs the one of the command of each task.
func (h *Handlers) Handler() Handler {
	handler := h.route
	for _, around := range slices.Backward(h.around) {
		handler = around(handler)
	}
	return handler
}

func (h *Handlers) route(ctx context.Context, d Delivery) Outcome {
	handler := h.of[d.Task.Command]
	if handler == nil {
		handler = h.of[wire.AllCommands]
	}
	if handler == nil {
		return NotStarted("there is no handler for " + d.Task.Command)
	}
	return handler(ctx, d)
}

// WorkAll is Work for tasks of several commands, over one session and with one window.
func (c *Client) WorkAll(ctx context.Context, h *Handlers, options ...WorkOption) error {
	if h.err != nil {
		return h.err
	}
	return c.work(ctx, h.Commands(), h.Handler(), options)
}
