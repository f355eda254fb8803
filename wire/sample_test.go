package wire

import (
	"math"
	"strings"
)

// The samples have every member of their kind set, so that a golden file
// shows each name once and a round trip that loses one is seen.

const (
	sampleTimeMs = 1_767_225_600_123 // 2026-01-01T00:00:00.123Z
	sampleHour   = 3_600_000
)

// awkward holds what has to be escaped, what must not be, and what looks like
// it has to: quotes, a backslash, control characters, U+2028, an astral rune.
const awkward = "\"\\/\b\f\n\r\t\x00\x1f\x7f é \u2028 \U0001F600 <&>"

// awkwardName is what of it a name may have.
const awkwardName = "\"\\/ é \u2028 \U0001F600 <&>"

func sampleID(n byte) TaskID {
	return TaskID(NewUUIDv7(sampleTimeMs, [10]byte{9: n}))
}

func sampleToken(n byte) Token { return Token{0: 0xab, 15: n} }

func sampleRef(n byte) TaskRef { return TaskRef{TaskID: sampleID(n), Token: sampleToken(n)} }

func samplePayload() []byte {
	return []byte(`{"b": 1, "a":[1e400,-0.0,12345678901234567890,"\u00e9\/\ud800"],"a":null }`)
}

func sampleTask() *Task {
	return &Task{
		ID:           sampleID(1),
		Command:      "sha256",
		Payload:      samplePayload(),
		Priority:     9,
		Status:       StatusInProgress,
		Location:     LocationInProgress,
		Attempts:     1,
		MaxAttempts:  5,
		Deliveries:   2,
		Webhook:      "https://example.org/hook",
		WorkerID:     "ada " + awkward,
		LeaseUntilMs: sampleTimeMs + sampleHour,
		RunUntilMs:   sampleTimeMs + 2*sampleHour,
		VisibleAtMs:  sampleTimeMs + 1,
		ExpiresAtMs:  sampleTimeMs + 3*sampleHour,
		CancelCause:  CancelExpired,

		TimeoutSeconds: 90,

		Error: "exit 1: " + awkward,
		History: []HistoryLine{
			{Delivery: 1, WorkerID: "bob", FromMs: sampleTimeMs, ToMs: sampleTimeMs + 877, Cause: ErrorLeaseExpired},
			{Delivery: 2, WorkerID: "eve", FromMs: sampleTimeMs + 900, ToMs: sampleTimeMs + 901, Cause: "nack"},
		},
		TenantID:    DefaultTenant,
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		TraceState:  "vendor=1",
		Progress:    sampleProgress(),
		Printed:     true,
		Labels:      "customer=M\u00fcller \"&\" Co=\nrun=2026-11",
		CreatedAtMs: sampleTimeMs,
		UpdatedAtMs: sampleTimeMs + 999,
	}
}

func sampleProgress() *TaskProgress {
	return &TaskProgress{
		ProgressRequest: ProgressRequest{Percent: 40, HasPercent: true, Note: awkward, Data: []byte(`{"page": 1e400}`)},
		AtMs:            sampleTimeMs, Delivery: 2,
	}
}

// barePendingTask is a task as it stands right after its enqueue.
func barePendingTask() *Task {
	return &Task{
		ID: sampleID(2), Command: "a", Payload: []byte("null"), Status: StatusPending, Location: LocationPending,
		MaxAttempts: 5, TenantID: DefaultTenant, CreatedAtMs: sampleTimeMs, UpdatedAtMs: sampleTimeMs,
	}
}

func sampleEnqueue() EnqueueRequest {
	return EnqueueRequest{
		Command: "resize:v2.a_b-c", Payload: samplePayload(), Priority: 3, MaxAttempts: 7,
		TimeoutSeconds: MaxTimeoutSeconds, ExpiresAtMs: sampleTimeMs + sampleHour,
		IdempotencyKey: "key " + awkward, RunAtMs: sampleTimeMs, TraceParent: goodTrace, TraceState: "v=1",
		Labels: "customer=acme\nrun=2026-11",
	}
}

func sampleResult() ResultRequest {
	return ResultRequest{
		Status: StatusCompleted, Result: []byte(`{"sha": "ab\u0063", "n":1e400}`), Error: "warning",
		Artifacts: []Artifact{{Name: "log", URL: "https://example.org/log"}, {Name: strings.Replace(awkwardName, "\u2028", "", 1), URL: "s3://b/k"}},
	}
}

func sampleRecord() *ResultRecord {
	r := sampleResult()
	return &ResultRecord{
		TaskID: sampleID(1), Status: r.Status, Result: r.Result, Error: r.Error, Artifacts: r.Artifacts,
		CompletedAtMs: sampleTimeMs, CancelCause: CancelExpired,
	}
}

func sampleError() *Error {
	return &Error{
		Code: CodeIdempotencyConflict, Sentence: "idempotencyKey was used " + awkward, TaskID: sampleID(3),
		Status: StatusPending, RetryAfterSeconds: 2,
	}
}

func sampleQueues() []QueueFigures {
	return []QueueFigures{
		{
			Command: "sha256", TenantID: DefaultTenant, Ready: 1, Delayed: 2, InProgress: 3, Dead: 4, Paused: true,
			OldestReadyAtMs: sampleTimeMs, Settings: sampleSettings(), Effective: sampleSettings(),
		},
		{Command: "b", TenantID: awkward},
	}
}

func sampleSettings() QueueSettings {
	return QueueSettings{
		Spread: true, MaxAttempts: 7, LeaseSeconds: 30, TimeoutSeconds: 600, TTLSeconds: 86_400,
		Backoff:          Backoff{Policy: BackoffLinear, BaseSeconds: 2, MaxSeconds: 60},
		RetentionSeconds: 3600, DLQRetentionSeconds: 7200,
	}
}

func ref(n int64) Ref { return Ref{Value: n, Present: true} }

func sampleClientFrames() map[string]ClientFrame {
	return map[string]ClientFrame{
		"hello": &Hello{
			Ref: ref(1), Token: "secret", WorkerID: awkwardName, Resume: "key", MaxMessageBytes: MinMaxMessageBytes,
		},
		"hello-bare": &Hello{},
		"subscribe": &Subscribe{
			Ref: ref(-9), Commands: []string{"a", "b:c"}, LeaseSeconds: 30, Window: 8,
		},
		"subscribe-all":   &Subscribe{Commands: []string{AllCommands}, LeaseSeconds: MaxLeaseSeconds},
		"window":          &Window{Ref: ref(math.MaxInt64), Size: 3},
		"window-zero":     &Window{},
		"received":        &Received{Ref: ref(0), Through: 12},
		"result":          &Result{Ref: ref(2), TaskRef: sampleRef(1), ResultRequest: sampleResult()},
		"result-failed":   &Result{TaskRef: sampleRef(1), ResultRequest: ResultRequest{Status: StatusFailed, Error: awkward, Exit: Exit{Code: 65, Coded: true}}},
		"nack":            &Nack{Ref: ref(3), TaskRef: sampleRef(1), NackRequest: NackRequest{DelaySeconds: 7, Reason: "busy"}},
		"nack-by-policy":  &Nack{TaskRef: sampleRef(1), NackRequest: NackRequest{DelaySeconds: -1, Exit: Exit{Signal: "SIGKILL"}}},
		"nack-of-code-0":  &Nack{TaskRef: sampleRef(1), NackRequest: NackRequest{Exit: Exit{Coded: true}}},
		"nack-at-once":    &Nack{TaskRef: sampleRef(1)},
		"abandon":         &Abandon{Ref: ref(4), TaskRef: sampleRef(1)},
		"release":         &Release{Ref: ref(5), TaskRef: sampleRef(1)},
		"release-unbegun": &Release{TaskRef: sampleRef(1), ReleaseRequest: ReleaseRequest{NotStarted: true, Stopping: true}},
		"heartbeat":       &Heartbeat{Ref: ref(6), Tasks: []TaskRef{sampleRef(1), sampleRef(2)}, ExtendSeconds: 60},
		"heartbeat-all":   &Heartbeat{Ref: ref(7)},
		"heartbeat-none":  &Heartbeat{Tasks: []TaskRef{}},
		"enqueue":         &Enqueue{Ref: ref(8), EnqueueRequest: sampleEnqueue()},
		"enqueue-delayed": &Enqueue{EnqueueRequest: EnqueueRequest{Command: "a", Payload: []byte("[]"), MaxAttempts: 5, DelaySeconds: 9, TTLSeconds: 10}},
		"drain":           &Drain{Ref: ref(10)},
		"cancel":          &Cancel{Ref: ref(11), TaskID: sampleID(1)},
		"progress":        &Progress{Ref: ref(12), TaskRef: sampleRef(1), ProgressRequest: sampleProgress().ProgressRequest},
		"progress-none":   &Progress{TaskRef: sampleRef(1), ProgressRequest: ProgressRequest{HasPercent: true}},
		"output":          &Output{Ref: ref(13), TaskRef: sampleRef(1), OutputRequest: OutputRequest{Stream: StreamErr, Text: awkward}},
		"output-bare":     &Output{TaskRef: sampleRef(1), OutputRequest: OutputRequest{Text: "a\n"}},
	}
}

func sampleServerFrames() map[string]ServerFrame {
	return map[string]ServerFrame{
		"welcome": &Welcome{
			SessionID: SessionID(sampleID(7)), Resume: "key", WorkerID: "ada", TenantID: DefaultTenant,
			PingSeconds: PingSeconds, ResumeGraceSeconds: ResumeGraceSeconds, MaxMessageBytes: MaxClientMessageBytes,
			MaxUnanswered: MaxUnansweredRequests, Durability: "fsync", ServerTimeMs: sampleTimeMs, Version: "1.0.0", Leader: awkward,
			Features: []string{"a", awkward}, Held: []TaskRef{sampleRef(1), sampleRef(2)},
		},
		"welcome-bare": &Welcome{SessionID: SessionID(sampleID(7))},
		"task": &TaskFrame{
			Seq: 1, Token: sampleToken(1), LeaseForMs: 30_000, LeaseUntilMs: sampleTimeMs + 30_000,
			RunForMs: 60_000, RunUntilMs: sampleTimeMs + 60_000, Task: sampleTask(),
		},
		"task-bare":    &TaskFrame{Seq: 2, Token: sampleToken(2), LeaseForMs: 1, Task: barePendingTask()},
		"ok":           &OK{Ref: ref(1)},
		"ok-enqueue":   &OK{Ref: ref(2), TaskID: sampleID(1), Replayed: true},
		"ok-nack":      &OK{Ref: ref(3), TaskID: sampleID(1), NackStatus: NackRequeued, DelaySeconds: 5},
		"ok-heartbeat": &OK{Ref: ref(4), LeaseUntilMs: sampleTimeMs, RunUntilMs: sampleTimeMs + 9, Lost: []TaskRef{sampleRef(1), {TaskID: sampleID(2)}}, IsHeartbeat: true},
		"ok-heartbeat-nothing-lost": &OK{
			Ref: ref(5), LeaseUntilMs: sampleTimeMs, IsHeartbeat: true,
		},
		"error":          &ErrorFrame{Ref: ref(6), TaskID: sampleID(1), Err: Refuse(CodeLeaseLost, "lease is lost")},
		"error-conflict": &ErrorFrame{TaskID: sampleID(3), Err: sampleError()},
		"revoked":        &Revoked{TaskRef: sampleRef(1), Reason: RevokedExpired},
		"draining":       &Draining{Reason: "shutdown", GraceSeconds: 30},
	}
}
