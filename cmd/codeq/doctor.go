//go:build unix && !clientonly

package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"codeq/internal/audit"
	"codeq/store"
	"codeq/wire"
)

type doctorCmd struct {
	Dir             string `arg:"" type:"path" help:"Data directory of a server that does not run."`
	ID              string `arg:"" optional:"" name:"id" help:"Task whose records are printed, with --dump."`
	RebuildCounters bool   `help:"Count the tasks of every queue and rewrite the counters."`
	Dump            bool   `help:"Print the records instead of checking them; with ID those of one task."`
	AcceptLoss      string `placeholder:"FILE" help:"Accept the loss in this log or MANIFEST, so that a server can start."`
}

// Help is the longer text of "codeq doctor --help".
func (d *doctorCmd) Help() string {
	return `It reads every record, index entry, lease, counter, payload, result and key, compares them with one another and
names each that does not agree, with the key where it was found. The exit code is 0 if all agree and 1 if not. It
holds all tasks in memory, and must not run beside a server. It changes nothing: permission to read the directory is
enough, and a backup is not changed.

--dump prints what is stored, one key on each line: the shard, the key in words, the record with the names of its
fields. Payloads and results are printed as they came in.

Two flags change the directory; keep a copy of it first. --rebuild-counters rewrites the counters, which follow from
the rest. If a log or MANIFEST has lost what was synced, doctor and server report it and do not start: restore a
backup, or accept the loss with --accept-loss and the FILE that they name. It prints what is dropped and checks the
rest. For any other finding restore a backup, or keep the directory and ask.`
}

// examination is the answer of the doctor as JSON.
type examination struct {
	Accepted  string        `json:"accepted,omitempty"`
	Corrected *int          `json:"correctedQueues,omitempty"`
	Findings  []findingLine `json:"findings"`
}

type findingLine struct {
	Shard    int    `json:"shard"`
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
}

// Run examines a data directory.
func (d *doctorCmd) Run(a *app) (err error) {
	id, err := d.task()
	if err != nil {
		return err
	}
	o := store.Options{
		Dir: d.Dir, MustExist: true, Log: zerolog.Nop(),
		Fatal: func(cause error) { os.Exit(a.end(cause)) },
	}
	var said examination
	if d.AcceptLoss != "" {
		if said.Accepted, err = store.AcceptLoss(o, d.AcceptLoss); err != nil {
			return err
		}
		a.say("%s", said.Accepted)
	}
	open := store.OpenReadOnly
	if d.RebuildCounters {
		open = store.Open
	}
	s, err := open(o)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	if d.RebuildCounters {
		corrected, err := audit.RebuildCounters(s)
		if err != nil {
			return err
		}
		said.Corrected = &corrected
	}
	if d.Dump {
		return d.dump(a, s, id)
	}
	findings, err := audit.Check(s)
	if err != nil {
		return err
	}
	return d.report(a, &said, findings)
}

// task is the task to print, zero for all.
func (d *doctorCmd) task() (id wire.TaskID, err error) {
	if d.ID == "" {
		return id, nil
	}
	if !d.Dump {
		return id, wrong("an ID is for --dump: give --dump, or leave the ID out")
	}
	return parseID(d.ID)
}

// dump prints the records of all tasks, or of one, and fails if there is none of it.
func (d *doctorCmd) dump(a *app, s *store.Store, id wire.TaskID) error {
	found := id.IsZero()
	var failed error
	err := audit.Dump(s, id, func(l audit.Line) {
		found = true
		if failed != nil {
			return
		}
		if a.JSON {
			failed = a.writeJSON(l)
			return
		}
		_, failed = fmt.Fprintln(a.out, printable(strings.TrimSpace(fmt.Sprintf("%d %s %s", l.Shard, l.Key, l.Value))))
	})
	if err = cmp.Or(err, failed); err != nil || found {
		return err
	}
	return fmt.Errorf("%s has no record of the task %v", d.Dir, id)
}

func (d *doctorCmd) report(a *app, said *examination, findings []audit.Finding) error {
	said.Findings = make([]findingLine, 0, len(findings))
	for _, f := range findings {
		said.Findings = append(said.Findings, findingLine{f.Shard, f.Kind, f.String()})
	}
	if a.JSON {
		if err := a.writeJSON(said); err != nil {
			return err
		}
	} else {
		d.tell(a, said)
	}
	if len(findings) > 0 {
		return errSaid
	}
	return nil
}

func (d *doctorCmd) tell(a *app, said *examination) {
	if said.Corrected != nil {
		a.say("the counters of %d queues were corrected", *said.Corrected)
	}
	for _, f := range said.Findings {
		fmt.Fprintln(a.out, printable(f.Sentence))
	}
	if len(said.Findings) == 0 {
		a.say("%s is in order", d.Dir)
		return
	}
	a.say("%s has %d faults", d.Dir, len(said.Findings))
}
