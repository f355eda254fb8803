package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"codeq/client"
	"codeq/wire"
)

const (
	exitFine     = 0
	exitFailed   = 1
	exitWrong    = 2
	exitNotThere = 3
	exitAgain    = 75 // EX_TEMPFAIL of sysexits.h
)

// exitTable is what "codeq help exit-codes" and docs/cli.md say.
var exitTable = []struct {
	code    int
	word    string
	meaning string
}{
	{exitFine, "done", "the command did its work"},
	{exitFailed, "failed", "the server refused it, it failed, it was stopped, or the task whose result it waits for did not complete"},
	{exitWrong, "wrong call", "the command line, or a value in it, is wrong; nothing was done"},
	{exitNotThere, "not there", "there is no such task, queue or dead letter, or no task was ready to claim"},
	{exitAgain, "try again", "no server answers; it starts, stops, is too busy or its disk is full; the time to wait is over; or no answer says whether the command was done"},
}

// exitOfCode is the exit code of each refusal of the server that does not end with exitFailed.
var exitOfCode = map[wire.Code]int{
	wire.CodeInvalidBody:     exitWrong,
	wire.CodeInvalidCommand:  exitWrong,
	wire.CodeInvalidPriority: exitWrong,
	wire.CodeInvalidTime:     exitWrong,
	wire.CodeInvalidWebhook:  exitWrong,
	wire.CodeInvalidResult:   exitWrong,
	wire.CodeInvalidArgument: exitWrong,
	wire.CodeUnknownMember:   exitWrong,
	wire.CodeTaskNotFound:    exitNotThere,
	wire.CodeResultNotFound:  exitAgain, // the task has not ended
	wire.CodeNotInDLQ:        exitNotThere,
	wire.CodeQueueDeleted:    exitAgain, // once it is gone, the name makes a new one
	wire.CodeQueueNotFound:   exitNotThere,
	wire.CodeSessionNotFound: exitNotThere,
	wire.CodeTooLarge:        exitWrong,
	wire.CodeRateLimited:     exitAgain,
	wire.CodeOverloaded:      exitAgain,
	wire.CodeDraining:        exitAgain,
	wire.CodeNotLeader:       exitAgain,
	wire.CodeStorageFull:     exitAgain,
	wire.CodeAuthUnavailable: exitAgain,
}

// exitError is an error that has its exit code.
type exitError struct {
	error
	code int
}

// Unwrap is the error itself.
func (e *exitError) Unwrap() error { return e.error }

// wrong is a mistake in the command line.
func wrong(format string, args ...any) error {
	return &exitError{fmt.Errorf(format, args...), exitWrong}
}

// tryAgain is a failure that may be over later.
func tryAgain(format string, args ...any) error {
	return &exitError{fmt.Errorf(format, args...), exitAgain}
}

// errSaid ends a command whose error is printed already, with exit code 1 unless an error
// around it has another.
var errSaid = errors.New("already said")

// saidBefore is errSaid with that exit code.
func saidBefore(code int) error { return &exitError{errSaid, code} }

// exitCode decides the exit code of a command. No other place does.
func exitCode(err error) int {
	var own *exitError
	var refusal *wire.Error
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, client.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded), client.Unanswered(err):
		return exitAgain
	case errors.As(err, &refusal):
		if code, known := exitOfCode[refusal.Code]; known {
			return code
		}
	}
	return exitFailed
}

// worseExit is the exit code of two parts of a command: a failure wins over try again.
func worseExit(one, other int) int {
	if one == exitFine || one == exitAgain && other != exitFine {
		return other
	}
	return one
}

// showExitCodes is the page of the exit codes.
func (a *app) showExitCodes() error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "Every command ends with one of these exit codes:\n\n")
	for _, row := range exitTable {
		fmt.Fprintf(w, "  %d\t%s\t%s\n", row.code, row.word, row.meaning)
	}
	return w.Flush()
}
