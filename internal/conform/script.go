package conform

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// script is one session with a driver.
type script struct {
	name string
	// proves is a sentence of docs/sdk-guide.md.
	proves string
	// needs is the optional part of a driver without which the script is skipped; "" is none.
	needs string
	do    func(x *run)
}

// scripts are all scripts, in the order of the guide.
func scripts() []script {
	return slices.Concat(workScripts, leaseScripts, linkScripts, resumeScripts, endScripts, strangeScripts, postScripts, resultScripts, wayScripts, nodeScripts)
}

// Options say what is tried.
type Options struct {
	// Command starts the driver.
	Command []string
	// Only is the name of a script, or has those tried whose names contain it; "" is all.
	Only string
	// Patience is how long something may take that must come; 0 is 30 s.
	Patience time.Duration
	// AtOnce is how many scripts run at the same time.
	AtOnce int
}

// Verdict is how one script ended.
type Verdict struct {
	Name   string `json:"name"`
	Proves string `json:"proves"`
	// Failed is what was missing, Skipped why the script was not tried; "" in any other case.
	Failed  string `json:"failed,omitempty"`
	Skipped string `json:"skipped,omitempty"`
	// Said is the end of what the driver of a script that failed wrote to standard error.
	Said   string `json:"said,omitempty"`
	TookMs int64  `json:"tookMs"`
}

// List returns the names of the scripts and the sentences that they prove.
func List() (all []Verdict) {
	for _, s := range scripts() {
		all = append(all, Verdict{Name: s.name, Proves: s.proves})
	}
	return all
}

// Try runs scripts and returns their verdicts in the order of the guide; told gets each as it ends,
// one after another. The end of ctx ends it, and scripts that were not tried have no verdict.
func Try(ctx context.Context, o Options, told func(Verdict)) []Verdict {
	chosen := choose(o.Only)
	verdicts := make([]Verdict, len(chosen))
	places := make(chan struct{}, max(1, o.AtOnce))
	var tries sync.WaitGroup
	var telling sync.Mutex
	for i := range chosen {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		tries.Go(func() {
			defer func() { <-places }()
			verdict := chosen[i].try(ctx, &o)
			if ctx.Err() != nil {
				return
			}
			telling.Lock()
			defer telling.Unlock()
			verdicts[i] = verdict
			told(verdict)
		})
	}
	tries.Wait()
	return slices.DeleteFunc(verdicts, func(v Verdict) bool { return v.Name == "" })
}

// choose are the scripts of that name, or those whose names contain it.
func choose(only string) []script {
	all := scripts()
	if i := slices.IndexFunc(all, func(s script) bool { return s.name == only }); i >= 0 {
		return all[i : i+1]
	}
	return slices.DeleteFunc(all, func(s script) bool { return !strings.Contains(s.name, only) })
}

// try runs one script.
func (s *script) try(ctx context.Context, o *Options) Verdict {
	ctx, cancel := context.WithTimeout(ctx, scriptFor)
	defer cancel()
	v := Verdict{Name: s.name, Proves: s.proves}
	began := time.Now()
	x := &run{ctx: ctx, command: o.Command, patience: cmp.Or(o.Patience, defaultPatience)}
	v.Failed, v.Skipped = s.play(x)
	if err := x.close(); err != nil && v.Failed == "" {
		v.Failed = err.Error()
	}
	if v.Failed != "" && x.driver != nil {
		v.Said = x.driver.said.String()
	}
	v.TookMs = time.Since(began).Milliseconds()
	return v
}

// play runs the script to its end or its failure.
func (s *script) play(x *run) (failed, skipped string) {
	defer func() {
		if p := recover(); p != nil {
			failed = failedAs(p)
		}
	}()
	x.start()
	if s.needs != "" && !slices.Contains(x.can, s.needs) {
		return "", fmt.Sprintf("the driver has no %s", s.needs)
	}
	s.do(x)
	return "", ""
}
