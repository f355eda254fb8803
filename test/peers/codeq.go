package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

const codeqName = "codeq"

// codeq is measured by its own bench, which checks each task, too.
func codeq() *queue {
	q := &queue{name: codeqName}
	q.find = func(s *settings) error {
		if err := need(s.codeq, "run make build"); err != nil {
			return err
		}
		out, err := exec.Command(s.codeq, "--version").Output()
		q.version, _, _ = strings.Cut(strings.TrimSpace(string(out)), ",")
		q.version = strings.TrimPrefix(q.version, "codeq ")
		return err
	}
	q.ways = []way{
		{name: "canonical", synced: "yes", measure: bench()},
		{name: "canonical over HTTP", synced: "yes", measure: bench("--http")},
		{name: "one ordered queue", pipelined: true, synced: "yes", measure: bench("--pipeline", "64", "--window", "4096")},
		{name: "a spread queue", pipelined: true, synced: "yes", measure: bench("--pipeline", "64", "--window", "4096", "--spread")},
	}
	return q
}

func bench(flags ...string) func(ctx context.Context, s *settings, dir string) (*figure, error) {
	return func(ctx context.Context, s *settings, dir string) (*figure, error) {
		flags := append([]string{"bench", "--json", "--dir", dir, "--producers", strconv.Itoa(producers),
			"--payload-bytes", strconv.Itoa(payloadBytes), "--seconds", fmt.Sprint(s.measure.Seconds()),
			"--warm-up", fmt.Sprint(s.warmUp.Seconds())}, flags...)
		cmd := exec.CommandContext(ctx, s.codeq, flags...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		var got struct {
			CyclesPerSecond         float64
			ServerCPUMicrosPerCycle float64
			ServerRSSMiB            float64
		}
		if err := json.Unmarshal(out, &got); err != nil {
			return nil, err
		}
		return &figure{got.CyclesPerSecond, got.ServerCPUMicrosPerCycle, got.ServerRSSMiB}, nil
	}
}
