package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeq/internal/meter"
)

func TestMetricsShowTheQueuesWithTheMostEventsAndSumTheOthers(t *testing.T) {
	l := New(Options{Shards: 1})
	l.Load(0, 0, nil)
	number := uint64(1)
	for queue, tasks := range []int{1, 4, 2, 3, 5} {
		events := cycle(number, tasks, 1)
		for i := range events {
			if events[i].Command, events[i].Queue = fmt.Sprint("q", queue), uint32(queue+1); queue == 4 {
				events[i].Tenant, events[i].Command = "other", "other"
			}
			events[i].SpentMs, events[i].TotalMs = 16, 0
		}
		number += uint64(len(events))
		l.Observe(0, events)
	}
	var p meter.Page
	l.WriteMetrics(&p, 2, "other")
	lines := strings.Split(string(p.Text()), "\n")
	for _, want := range []string{
		`codeq_queue_transitions_total{tenant="default",command="q1",cause="grant"} 4`,
		`codeq_queue_transitions_total{tenant="default",command="q3",cause="result"} 3`,
		`codeq_queue_transitions_total{tenant="other",command="other",cause="enqueue"} 8`,
		`codeq_queue_dead_letters_total{tenant="default",command="q1"} 0`,
		`codeq_queue_wait_seconds_bucket{tenant="default",command="q1",le="0.015"} 0`,
		`codeq_queue_wait_seconds_bucket{tenant="default",command="q1",le="0.063"} 4`,
		`codeq_queue_wait_seconds_bucket{tenant="default",command="q1",le="+Inf"} 4`,
		`codeq_queue_wait_seconds_sum{tenant="default",command="q1"} 0.064`,
		`codeq_queue_run_seconds_count{tenant="other",command="other"} 8`,
		`codeq_queue_total_seconds_bucket{tenant="default",command="q3",le="0"} 3`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line is %s", want)
		}
	}
	for _, line := range lines {
		if strings.Contains(line, `"q0"`) || strings.Contains(line, `"q2"`) || strings.Contains(line, `cause="nack"`) {
			t.Errorf("too much: %s", line)
		}
	}
}
