package server

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/shard"
	"codeq/shardactor"
)

// mustBeSet fails for each field of a struct that is zero, but for those that are
// said to stay so.
func mustBeSet(t *testing.T, options any, but ...string) {
	t.Helper()
	v := reflect.Indirect(reflect.ValueOf(options))
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if set := !v.Field(i).IsZero(); set == slices.Contains(but, name) {
			t.Errorf("%v.%s is set: %t", v.Type(), name, set)
		}
	}
}

// allOptions sets every option, each to a value of its own.
func allOptions(t *testing.T, log *keptLog) Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entry := "- name: ada\n  sha256: " + auth.HashToken("secret") + "\n  tenant: acme\n  subject: ada\n  scopes: [producer, operator]\n  commands: [\"*\"]\n"
	if err := os.WriteFile(file, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	providers := openProviders(t, tokens, "[]\n")
	ahead := func() int64 { return time.Now().Add(24 * time.Hour).UnixNano() }
	o := Options{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Shards: 3, Tokens: tokens, Providers: providers, InsecureNoAuth: true,
		Names: Names{PublicHosts: []string{"queue.example"}, AllowOrigins: []string{"https://app.example"}, PublicURL: "https://queue.example", NodeURL: "https://a.example", WebhookAllow: []string{"127.0.0.1"}}, RequireLeaseToken: true,
		MaxSessions: 11, PingSeconds: 13, RetentionFor: 17 * time.Hour, DLQRetentionFor: 19 * time.Hour, MemoryBytes: 160 << 20, EventsBytes: 31 << 20,
		Log: zerolog.New(log), LogLost: func() int64 { return 23 }, Version: "29", Settings: []byte(`{"settings":[31]}`), FS: vfs.Default,
		Time: TimeSource{WallNs: ahead, ElapsedNs: ahead}, Others: Others{OTLPEndpoint: "http://127.0.0.1:1"},
		Artifacts: Artifacts{Dir: t.TempDir(), MaxBytes: 37},
	}
	mustBeSet(t, &o)
	return o
}

// Every option reaches the parts that act on it. An option of a part that nobody sets
// is named here, with who else does.
func TestEveryOptionReachesItsPart(t *testing.T) {
	log := new(keptLog)
	o := allOptions(t, log)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	gates, budget := &shardactor.Gates{}, splitMemory(o.MemoryBytes)
	guard := guardOptions(&o)
	mustBeSet(t, guard)
	stored := s.storeOptions(gates, budget)
	// The store's own Fatal does what the server's does. Node, CreationID and CountFree are those
	// of a cluster. The others are of tests and tools.
	mustBeSet(t, &stored, "Fatal", "Node", "CreationID", "CountFree", "MustExist", "DisableAutomaticCompactions")
	engine := s.engineOptions(gates, budget)
	// Limits of memory and of rounds have one value everywhere; the rest is for simulations.
	mustBeSet(t, &engine, "Index", "Limits", "Made", "Observe", "Heard", "Strayed")
	sessions := s.sessionOptions(budget)
	mustBeSet(t, &sessions, "Random") // crypto/rand
	api := s.apiOptions()
	mustBeSet(t, &api)

	eighth := o.MemoryBytes / 8
	for name, pair := range map[string][2]any{
		"DataDir":             {stored.Dir, o.DataDir},
		"FS":                  {stored.FS, o.FS},
		"Shards":              {[2]int{stored.Shards, s.Shards()}, [2]int{3, 3}},
		"MemoryBytes, tables": {stored.MemTableBytes, int(eighth / memTables)},
		"MemoryBytes, cache":  {stored.CacheBytes, int(eighth)},
		"MemoryBytes, boxes":  {engine.Mailbox.Bytes, minMailboxBytes},
		"MemoryBytes, outbox": {[2]int64{sessions.OutboxBytes, api.AnswerBytes}, [2]int64{eighth, eighth}},
		"open files":          {[2]int{stored.MaxOpenTables, sessions.MaxGreeting}, [2]int{s.files.tables, s.files.connections / greetingPart}},
		"Events":              {engine.Events, s.tracer},
		"EventsBytes":         {s.eventsOptions(), events.Options{Shards: 3, MemoryBytes: 31 << 20}},
		"Retention":           {engine.Retention, shard.Retention{DoneForMs: 17 * 3_600_000, DeadForMs: 19 * 3_600_000}},
		"PublicURL":           {engine.PublicURL, "https://queue.example"},
		"NodeURL":             {[3]string{sessions.Leader, api.LeaderURL, s.watchOptions().Leader}, [3]string{o.NodeURL, o.NodeURL, o.NodeURL}},
		"MaxSessions":         {sessions.MaxSessions, 11},
		"PingSeconds":         {sessions.PingSeconds, 13},
		"Version":             {[2]string{sessions.Version, api.Version}, [2]string{"29", "29"}},
		"Durability":          {[2]string{sessions.Durability, api.Durability}, [2]string{Durability, Durability}},
		"RequireLeaseToken":   {api.RequireLeaseToken, true},
		"Tokens":              {guard.Tokens && api.Auth == s.auth && sessions.Auth == auth.Authenticator(o.Providers), true},
		"Listen":              {guard.Listen, o.Listen},
		"PublicHosts":         {guard.PublicHosts, o.PublicHosts},
		"AllowOrigins":        {guard.AllowOrigins, o.AllowOrigins},
		"Time, wall":          {time.UnixMilli(api.WallMs()).After(time.Now().Add(23 * time.Hour)), true},
		"Time, engine":        {time.UnixMilli(engine.StartClock(0)()).After(time.Now().Add(23 * time.Hour)), true},
		"Time, engine floor":  {engine.StartClock(4e12)(), int64(4e12)},
		"Time, log":           {strings.Contains(log.String(), "differs from the system clock"), true},
		"without a token":     {x.ask("POST", "/v1/codeq/tasks", okTask).status, 401},
		"with a token":        {x.as("secret").ask("POST", "/v1/codeq/tasks", okTask).status, 202},
		"Settings":            {string(api.Settings), `{"settings":[31]}`},
		"LogLost":             {strings.Contains(x.as("secret").ask("GET", "/metrics", "").body, "codeq_log_lines_lost_total 23\n"), true},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}
