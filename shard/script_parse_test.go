package shard

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"codeq/record"
	"codeq/wire"
)

// parse reads one message of a script: `verb who key=value …`. Who is a consumer
// for a worker's verbs and any name for a producer.
func (w *scriptWorld) parse(line string) (Message, error) {
	verb, args, err := datadriven.ParseLine(line)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("%q names nobody", line)
	}
	who := args[0].Key
	asker := Asker{Ref: Ref(scriptInt(args, "ref"))}
	if verb == "enqueue" || verb == "cancel" || verb == "run" || verb == "move" || verb == "replay" || verb == "purge" || verb == "explain" || verb == "leases" || verb == "configure" || verb == "cleanup" || verb == "copy" || verb == "freeze" || verb == "drop" || verb == "name" || verb == "copy-named" || strings.HasSuffix(verb, "watch") {
		asker.Sink = w.producer(who)
	} else {
		asker.Sink = w.consumerOf(who).Sink
	}
	switch verb {
	case "enqueue":
		return w.parseEnqueue(asker, args)
	case "subscribe":
		consumer := w.consumerOf(who)
		if window := scriptString(args, "window", ""); window != "" {
			consumer.SetWindow(scriptInt(args, "window"))
		}
		return &Subscribe{
			Asker: asker, Consumer: consumer.Consumer, Commands: strings.Split(scriptString(args, "commands", "a"), ","),
			LeaseForMs: int64(scriptInt(args, "lease")) * 1000,
		}, nil
	case "gone":
		return &SessionGone{Consumer: w.former[who].Consumer}, nil
	case "claim":
		consumer := w.consumerOf(who)
		consumer.SetWindow(max(1, scriptInt(args, "window")))
		return &Claim{
			Asker: asker, Consumer: consumer.Consumer, Commands: strings.Split(scriptString(args, "commands", "a"), ","),
			LeaseForMs: int64(scriptInt(args, "lease")) * 1000,
		}, nil
	case "watch":
		return &Watch{Asker: asker, Tenant: scriptString(args, "tenant", "default"), TaskID: w.taskID(scriptInt(args, "task"))}, nil
	case "cancel", "replay", "purge", "explain", "leases", "run", "move", "take":
		return w.parseManaged(verb, asker, args), nil
	case "cleanup":
		m := &Cleanup{Asker: asker, Limit: scriptInt(args, "limit")}
		for _, command := range strings.Split(scriptString(args, "command", "a"), ",") {
			m.Queues = append(m.Queues, record.QueueKey{Command: command, Tenant: "default"})
		}
		if ago := scriptString(args, "ago", ""); ago != "" {
			m.BeforeMs = w.nowMs - int64(scriptInt(args, "ago"))*1000
		}
		return m, nil
	case "freeze":
		return &Freeze{Asker: asker, Queue: scriptQueue(args), Delete: scriptDelete(args)}, nil
	case "name", "copy-named":
		return parseNamed(verb, asker, args), nil
	case "drop":
		return &Drop{Asker: asker, Queue: scriptQueue(args)}, nil
	case "configure", "copy":
		return parseSettings(verb, asker, args), nil
	case "unwatch":
		return &Unwatch{Asker: asker, TaskID: w.taskID(scriptInt(args, "task"))}, nil
	default:
		return w.parseDelivery(verb, asker, args)
	}
}

// parseNamed reads a change of a named record, or a copy with its version.
func parseNamed(verb string, asker Asker, args []datadriven.CmdArg) Message {
	key := record.NamedKey{Tenant: scriptString(args, "tenant", "default"), Kind: record.Kind(scriptString(args, "kind", "limits")), Name: scriptString(args, "name", "")}
	value := scriptString(args, "value", "")
	if verb == "copy-named" {
		return &CopyNamed{Asker: asker, Record: record.Named{NamedKey: key, Version: int64(scriptInt(args, "version")), Value: value}}
	}
	change := NameChange{Key: key, Value: value, IfVersion: -1, Most: scriptInt(args, "most")}
	if scriptString(args, "if", "") != "" {
		change.IfVersion = int64(scriptInt(args, "if"))
	}
	return &Name{Asker: asker, NameChange: change}
}

func scriptQueue(args []datadriven.CmdArg) record.QueueKey {
	return record.QueueKey{Command: scriptString(args, "command", "a"), Tenant: scriptString(args, "tenant", "default")}
}

// parseManaged reads what somebody does to a task who is not its worker.
func (w *scriptWorld) parseManaged(verb string, asker Asker, args []datadriven.CmdArg) Message {
	tenant, id := scriptString(args, "tenant", "default"), w.taskID(scriptInt(args, "task"))
	var commands []string
	if may := scriptString(args, "commands", ""); may != "" {
		commands = strings.Split(may, ",")
	}
	by := scriptString(args, "by", "")
	switch verb {
	case "cancel":
		return &Manage{Do: Cancel, By: by, Asker: asker, Tenant: tenant, Commands: commands, TaskID: id, Only: scriptPlace(args)}
	case "run":
		return &Manage{Do: RunNow, By: by, Asker: asker, Tenant: tenant, Commands: commands, TaskID: id}
	case "take":
		return &Manage{Do: TakeBack, By: by, Asker: asker, Tenant: tenant, Commands: commands, TaskID: id}
	case "move":
		return &Manage{Do: Prioritize, By: by, Asker: asker, Tenant: tenant, Commands: commands, TaskID: id, Only: scriptPlace(args), Priority: scriptInt(args, "priority")}
	case "explain":
		return &Explain{Asker: asker, Tenant: tenant, TaskID: id}
	case "leases":
		return &TellLeases{Asker: asker, Tenant: tenant, Tasks: []wire.TaskID{id, w.taskID(scriptInt(args, "and"))}}
	case "replay":
		m := &Manage{Do: Replay, By: by, Asker: asker, Tenant: tenant, Commands: commands, TaskID: id}
		if scriptString(args, "ago", "") != "" {
			m.EndedAtMs = w.nowMs - int64(scriptInt(args, "ago"))*1000
		}
		return m
	default:
		endedAtMs := w.nowMs - int64(scriptInt(args, "ago"))*1000
		return &Manage{Do: Purge, By: by, Asker: asker, Tenant: tenant, Commands: commands, TaskID: id, EndedAtMs: endedAtMs}
	}
}

// scriptPlace reads only=ready and the like.
func scriptPlace(args []datadriven.CmdArg) wire.Location {
	return map[string]wire.Location{
		"ready": wire.LocationPending, "delayed": wire.LocationDelayed, "running": wire.LocationInProgress,
	}[scriptString(args, "only", "")]
}

// parseSettings reads a change at home, or a copy with its version.
func parseSettings(verb string, asker Asker, args []datadriven.CmdArg) Message {
	key := scriptQueue(args)
	paused := scriptString(args, "paused", "")
	settings := wire.QueueSettings{
		Spread: scriptString(args, "spread", "") == "true", MaxAttempts: scriptInt(args, "max-attempts"), LeaseSeconds: scriptInt(args, "lease"),
		TimeoutSeconds: int64(scriptInt(args, "timeout")), TTLSeconds: int64(scriptInt(args, "ttl")),
		Backoff: wire.Backoff{
			Policy: scriptString(args, "policy", ""), BaseSeconds: int64(scriptInt(args, "base")),
			MaxSeconds: int64(scriptInt(args, "most")),
		},
		RetentionSeconds: int64(scriptInt(args, "retention")), DLQRetentionSeconds: int64(scriptInt(args, "dlq-retention")),
		MaxInProgress: scriptInt(args, "in-progress"), StartsPerSecond: scriptInt(args, "starts"),
		PerKey: wire.PerKey{InProgress: scriptInt(args, "key-in-progress"), StartsPerSecond: scriptInt(args, "key-starts")},
	}
	if verb == "copy" {
		return &CopySettings{Asker: asker, Queue: key, Settings: record.Settings{
			Version: int64(scriptInt(args, "version")), Paused: paused == "true", QueueSettings: settings,
			Deleting: scriptString(args, "deleting", "") == "true",
		}, Thaw: scriptString(args, "thaw", "") == "true"}
	}
	m := &Configure{Asker: asker, Queue: key}
	if paused != "" {
		on := paused == "true"
		m.Change.Paused = &on
		return m
	}
	if m.Change.Delete = scriptDelete(args); m.Change.Delete != nil {
		return m
	}
	m.Change.Settings = &settings
	return m
}

// scriptDelete reads delete=empty, delete=purge or delete=running.
func scriptDelete(args []datadriven.CmdArg) *QueueDelete {
	how := scriptString(args, "delete", "")
	if how == "" {
		return nil
	}
	return &QueueDelete{Purge: how != "empty", CancelRunning: how == "running"}
}

func (w *scriptWorld) producer(name string) Sink {
	for sink, known := range w.sinks {
		if known == name {
			return sink
		}
	}
	sink := &scriptSink{name: name}
	w.sinks[sink] = name
	return sink
}

func (w *scriptWorld) parseEnqueue(asker Asker, args []datadriven.CmdArg) (Message, error) {
	m := &Enqueue{
		Asker: asker, ID: w.taskID(scriptInt(args, "id")), Tenant: scriptString(args, "tenant", "default"),
		EnqueueRequest: wire.EnqueueRequest{
			Command: scriptString(args, "command", "a"), Payload: scriptBytes(args, "payload", "1"),
			Priority: scriptInt(args, "priority"), MaxAttempts: wire.DefaultMaxAttempts,
			IdempotencyKey: scriptString(args, "key", ""), DelaySeconds: int64(scriptInt(args, "delay")),
			TimeoutSeconds: int64(scriptInt(args, "timeout")), TTLSeconds: int64(scriptInt(args, "ttl")),
			Labels:         wire.Labels(strings.NewReplacer(":", "=", ",", "\n").Replace(scriptString(args, "labels", ""))),
			ConcurrencyKey: scriptString(args, "shares", ""),
			Webhook:        scriptString(args, "webhook", ""),
		},
	}
	if n := scriptInt(args, "max-attempts"); n != 0 {
		m.MaxAttempts = n
	}
	if span := scriptInt(args, "run-at"); span != 0 {
		m.RunAtMs = w.nowMs + int64(span)*1000
	}
	if span := scriptString(args, "expires-at", ""); span != "" {
		m.ExpiresAtMs = w.nowMs + int64(scriptInt(args, "expires-at"))*1000
	}
	m.Fingerprint = FingerprintOf(&m.EnqueueRequest)
	return m, nil
}

// scriptBytes reads payload=TEXT, or payload=x*300 for a JSON string of so many
// bytes.
func scriptBytes(args []datadriven.CmdArg, name, otherwise string) []byte {
	text := scriptString(args, name, otherwise)
	if n, err := strconv.Atoi(strings.TrimPrefix(text, "x*")); err == nil && strings.HasPrefix(text, "x*") {
		text = `"` + strings.Repeat("x", n-2) + `"`
	}
	return []byte(text)
}

// parseDelivery reads the verbs that name deliveries: task=1 token=t1.
func (w *scriptWorld) parseDelivery(verb string, asker Asker, args []datadriven.CmdArg) (Message, error) {
	consumer := w.consumerOf(args[0].Key)
	owner := Owner{
		Tenant: scriptString(args, "tenant", "default"), Subject: scriptString(args, "subject", "anonymous"),
		WorkerID: scriptString(args, "worker", ""),
	}
	ref, err := w.taskRef(args)
	if err != nil {
		return nil, err
	}
	switch verb {
	case "received":
		return &Received{Consumer: consumer.Consumer, Tasks: []wire.TaskRef{ref}}, nil
	case "undelivered":
		return &Undelivered{Consumer: consumer.Consumer, Tasks: []wire.TaskRef{ref}}, nil
	case "result":
		return &Result{Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, ResultRequest: wire.ResultRequest{
			Status: wire.Status(scriptString(args, "status", "COMPLETED")),
			Result: scriptBytes(args, "result", ""), Error: scriptString(args, "error", ""), Exit: scriptExit(args),
			Artifacts: scriptArtifacts(args),
		}, HasCredit: scriptInt(args, "credit") == 1}, nil
	case "nack":
		delay, err := strconv.ParseInt(scriptString(args, "delay", "-1"), 10, 64)
		return &End{How: Nack, Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, NackRequest: wire.NackRequest{
			DelaySeconds: delay, Reason: scriptString(args, "reason", ""), Exit: scriptExit(args),
		}}, err
	case "putoff":
		return &End{How: PutOff, Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, NackRequest: wire.NackRequest{DelaySeconds: int64(scriptInt(args, "delay"))}}, nil
	case "extend":
		return &Extend{Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, ExtendForMs: int64(scriptInt(args, "extend")) * 1000}, nil
	case "progress":
		p := &wire.ProgressRequest{Percent: scriptInt(args, "percent"), HasPercent: scriptString(args, "percent", "") != "", Note: scriptString(args, "note", "")}
		return &Report{Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, Progress: p}, nil
	case "output":
		return &Report{Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, Output: &wire.OutputRequest{Text: scriptString(args, "text", "")}}, nil
	case "begin":
		return &Upload{Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, Begin: scriptInt(args, "files")}, nil
	case "list":
		file := &wire.Artifact{Name: scriptString(args, "name", ""), File: scriptString(args, "file", ""), SizeBytes: 5, SHA256: "ab"}
		return &Upload{Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, Artifact: file}, nil
	case "abandon":
		return &End{How: Abandon, Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}}, nil
	case "release":
		return &End{How: Release, Holder: Holder{Asker: asker, Owner: owner, TaskRef: ref}, ReleaseRequest: wire.ReleaseRequest{
			NotStarted: scriptString(args, "started", "true") == "false", Stopping: scriptString(args, "stopping", "false") == "true",
		}}, nil
	case "heartbeat":
		m := &Heartbeat{Asker: asker, Owner: owner, Consumer: consumer.Consumer, ExtendForMs: int64(scriptInt(args, "extend")) * 1000}
		if !ref.TaskID.IsZero() {
			m.Tasks = []wire.TaskRef{ref}
		}
		return m, nil
	default:
		return nil, fmt.Errorf("unknown message %q", verb)
	}
}

// scriptArtifacts reads artifacts=NAME,NAME@FILE,NAME@http: files that were uploaded, that came with
// the result, and links.
func scriptArtifacts(args []datadriven.CmdArg) (list []wire.Artifact) {
	for name := range strings.SplitSeq(scriptString(args, "artifacts", ""), ",") {
		name, at, _ := strings.Cut(name, "@")
		a := wire.Artifact{Name: name, File: at}
		if at == "http" {
			a.URL, a.File = "http://x", ""
		}
		if name != "" {
			list = append(list, a)
		}
	}
	return list
}

// scriptExit reads exit=CODE or signal=NAME.
func scriptExit(args []datadriven.CmdArg) wire.Exit {
	return wire.Exit{
		Code: scriptInt(args, "exit"), Coded: scriptString(args, "exit", "") != "", Signal: scriptString(args, "signal", ""),
	}
}

func (w *scriptWorld) taskRef(args []datadriven.CmdArg) (wire.TaskRef, error) {
	n := scriptInt(args, "task")
	if n == 0 {
		return wire.TaskRef{}, nil
	}
	ref := wire.TaskRef{TaskID: w.taskID(n)}
	name := scriptString(args, "token", "t0")
	i, err := strconv.Atoi(strings.TrimPrefix(name, "t"))
	if err != nil || i > len(w.tokens) {
		return ref, fmt.Errorf("unknown token %q", name)
	}
	if i > 0 {
		ref.Token = w.tokens[i-1]
	}
	return ref, nil
}
