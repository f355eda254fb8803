package main

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"codeq/client"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCodesOfErrors(t *testing.T) {
	for want, err := range map[string]error{
		"outcome_unknown": fmt.Errorf("%w: %w", client.ErrOutcomeUnknown, wire.Refuse(wire.CodeForbidden, "no")),
		"forbidden":       fmt.Errorf("around it: %w", wire.Refuse(wire.CodeForbidden, "no")),
		"unreachable":     &client.UnreachableError{URL: "http://a", Err: context.DeadlineExceeded},
		"lease_lost":      fmt.Errorf("%w: sold", client.ErrLeaseLost),
		"moved":           client.ErrRedirected,
		"not_codeq":       client.ErrNotCodeq,
		"timeout":         context.DeadlineExceeded,
	} {
		if got := fmt.Sprint(codeOf(err)["code"]); got != want {
			t.Errorf("the code of %v is %s, want %s", err, got, want)
		}
	}
}
