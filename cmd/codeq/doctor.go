package main

import (
	"fmt"

	"github.com/rs/zerolog"

	"codeq/store"
)

type doctorCmd struct {
	Dir             string `arg:"" help:"Data directory of a server that does not run."`
	RebuildCounters bool   `help:"Count the tasks of every queue and write the counters anew."`
}

// Help is the longer text of "codeq doctor --help".
func (d *doctorCmd) Help() string {
	return `It reads every record, index entry, lease, counter, payload, result and key, compares them with one another and
names what does not agree, with the key it was found at. The exit code is 0 if all agrees and 1 if not. It holds
all tasks in memory, and may not run beside a server.

Counters follow from the rest, so they can be rebuilt. Anything else it finds is somebody's task: keep a copy of
the directory before you change something, or restore a backup.`
}

// examination is what the doctor says, as JSON.
type examination struct {
	Findings  []findingLine `json:"findings"`
	Corrected *int          `json:"correctedQueues,omitempty"`
}

type findingLine struct {
	Shard    int    `json:"shard"`
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
}

// Run examines a data directory.
func (d *doctorCmd) Run(a *app) (err error) {
	s, err := store.Open(store.Options{Dir: d.Dir, MustExist: true, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	var said examination
	if d.RebuildCounters {
		corrected, err := s.RebuildCounters()
		if err != nil {
			return err
		}
		said.Corrected = &corrected
	}
	findings, err := s.Check()
	if err != nil {
		return err
	}
	return d.report(a, &said, findings)
}

func (d *doctorCmd) report(a *app, said *examination, findings []store.Finding) error {
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
	a.say("%d faults were found in %s", len(said.Findings), d.Dir)
}
