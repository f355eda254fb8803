package session

import (
	"fmt"
	"strconv"
	"strings"

	"codeq/shard"
	"codeq/wire"
)

// effects delivers the lines of a block together, as one sync does.
func (w *scriptWorld) effects(input string) error {
	var list []shard.Effect
	for line := range strings.Lines(input) {
		e, err := parseEffect(strings.Fields(line), w.nowMs)
		if err != nil {
			return fmt.Errorf("effect %q: %w", strings.TrimSpace(line), err)
		}
		list = append(list, e)
	}
	w.step(&Effects{List: list})
	return nil
}

// parseEffect reads a kind and fields: ref=1 #1 t1 and whatever the kind has.
func parseEffect(words []string, nowMs int64) (shard.Effect, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("empty line")
	}
	f := effectFields{other: make(map[string]string)}
	for _, word := range words[1:] {
		if err := f.add(word); err != nil {
			return nil, err
		}
	}
	switch words[0] {
	case "granted":
		return &shard.Granted{
			Task: &wire.Task{
				ID: f.first().TaskID, Command: "a", Payload: []byte(f.other["payload"]),
				Status: wire.StatusInProgress, Location: wire.LocationInProgress, MaxAttempts: 5, Deliveries: 1, TenantID: "acme",
			},
			Token: f.first().Token, LeaseForMs: 30_000, LeaseUntilMs: nowMs + 30_000,
		}, nil
	case "resumed":
		return &shard.Resumed{Ref: f.ref, Held: f.tasks}, nil
	case "revoked":
		return &shard.Revoked{TaskRef: f.first(), Reason: f.other["reason"]}, nil
	case "drained":
		return &shard.Drained{Ref: f.ref}, nil
	case "answered":
		return &shard.Answered{TaskRef: f.first()}, nil
	case "enqueued":
		return &shard.Enqueued{Ref: f.ref, TaskID: f.first().TaskID, Replayed: f.other["replayed"] != ""}, nil
	case "subscribed":
		return &shard.Subscribed{Ref: f.ref}, nil
	case "cancelled":
		return &shard.Managed{Ref: f.ref, TaskID: f.first().TaskID}, nil
	case "completed":
		return &shard.Completed{Ref: f.ref, Record: &wire.ResultRecord{TaskID: f.first().TaskID}, CreditReused: f.other["reused"] != ""}, nil
	case "requeued":
		delay, _ := strconv.Atoi(f.other["delay"]) // absent is 0
		return &shard.Requeued{Ref: f.ref, TaskID: f.first().TaskID, Status: f.other["status"], DelaySeconds: int64(delay)}, nil
	case "extended":
		e := &shard.Extended{Ref: f.ref, Lost: f.tasks}
		if text := f.other["seconds"]; text != "" {
			seconds, err := strconv.Atoi(text)
			if err != nil {
				return nil, err
			}
			e.LeaseUntilMs = nowMs + int64(seconds)*1000
		}
		return e, nil
	case "refused":
		return &shard.Refused{Ref: f.ref, TaskID: f.first().TaskID, Err: wire.Refuse(wire.Code(f.other["code"]), "no")}, nil
	}
	return nil, fmt.Errorf("unknown kind")
}

type effectFields struct {
	ref   shard.Ref
	tasks []wire.TaskRef
	other map[string]string
}

func (f *effectFields) first() wire.TaskRef {
	if len(f.tasks) == 0 {
		return wire.TaskRef{}
	}
	return f.tasks[0]
}

func (f *effectFields) add(word string) error {
	key, value, isPair := strings.Cut(word, "=")
	if isPair && key != "ref" {
		f.other[key] = value
		return nil
	}
	number, err := strconv.Atoi(strings.TrimLeft(word, "ref=#t"))
	switch {
	case err != nil:
		return err
	case isPair:
		f.ref = shard.Ref(number)
	case word[0] == '#':
		f.tasks = append(f.tasks, wire.TaskRef{TaskID: testTask(number)})
	case word[0] == 't':
		f.tasks[len(f.tasks)-1].Token = testToken(number)
	}
	return nil
}
