package limit

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"codeq/shard"
	"codeq/wire"
)

// wantCode wants a refusal with a code, "" for none, and the seconds to wait.
func wantCode(t *testing.T, what string, got *wire.Error, code wire.Code, after int) {
	t.Helper()
	switch {
	case got == nil && code == "":
	case got == nil || got.Code != code || got.RetryAfterSeconds != after:
		t.Errorf("%s: got %+v, want %q after %d s", what, got, code, after)
	}
}

// wanted is the code of a refusal, and the seconds to wait.
type wanted struct {
	code  wire.Code
	after int
}

func (table *Table) enqueue(t *testing.T, subject string, tasks int, nowMs int64, want wanted) shard.Pass {
	t.Helper()
	pass, refusal := table.Enqueue("t", subject, tasks, 10*tasks, nowMs)
	wantCode(t, "enqueue", refusal, want.code, want.after)
	return pass
}

// A rate begins empty, lets a burst in after a pause and tells when it has enough; a
// request that can never fit is told so, and what made no task comes back.
func TestRatesOfATenantAndOfASubject(t *testing.T) {
	var table Table
	table.enqueue(t, "a", 1000, 0, wanted{})
	table.Set("t", wire.TenantLimits{
		DoorLimits: wire.DoorLimits{EnqueuesPerSecond: 10, Burst: 40}, PerCredential: wire.DoorLimits{EnqueuesPerSecond: 2, Burst: 30},
	}, 1000)
	table.enqueue(t, "a", 1, 1000, wanted{wire.CodeRateLimited, 1})
	table.enqueue(t, "a", 30, 5000, wanted{wire.CodeRateLimited, 11}) // the subject has 30 after 15 s
	table.enqueue(t, "a", 31, 99_000, wanted{wire.CodeTooLarge, 0})
	table.enqueue(t, "a", 30, 16_000, wanted{})
	table.enqueue(t, "b", 11, 16_000, wanted{wire.CodeRateLimited, 1}) // 10 of 40 are left
	pass := table.enqueue(t, "b", 10, 16_000, wanted{})
	for range 10 {
		pass.Door.GiveBack(pass.Counted, 10)
	}
	table.enqueue(t, "b", 10, 16_000, wanted{})
	// The same rates again go on as they are; others begin empty.
	table.Set("t", wire.TenantLimits{
		DoorLimits: wire.DoorLimits{EnqueuesPerSecond: 10, Burst: 40}, PerCredential: wire.DoorLimits{EnqueuesPerSecond: 2, Burst: 30}, Weight: 2,
	}, 17_000)
	table.enqueue(t, "b", 10, 17_000, wanted{})
	table.Set("t", wire.TenantLimits{DoorLimits: wire.DoorLimits{EnqueuesPerSecond: 1000}}, 18_000)
	table.enqueue(t, "b", 2, 18_001, wanted{wire.CodeRateLimited, 1})
	table.Set("t", wire.TenantLimits{}, 19_000)
	if pass := table.enqueue(t, "b", 1000, 19_000, wanted{}); pass != (shard.Pass{}) {
		t.Errorf("a tenant without limits has a pass %+v", pass)
	}
}

// Producers that all ask at once get in as many as may wait, exactly, by number or by bytes.
func TestAsManyWaitAsTheLimitSays(t *testing.T) {
	asManyWait(t, wire.TenantLimits{PendingTasks: 1000}, wire.RefusedByLimit{Pending: 1})
	asManyWait(t, wire.TenantLimits{PendingBytes: 10_009}, wire.RefusedByLimit{Bytes: 1})
}

func asManyWait(t *testing.T, l wire.TenantLimits, names wire.RefusedByLimit) {
	t.Helper()
	var table Table
	table.Set("t", l, 0)
	var all sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for n := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for range 500 {
				tasks := 1 + random.IntN(5)
				pass, refusal := table.Enqueue("t", "a", tasks, 10*tasks, 0)
				if refusal != nil {
					continue
				}
				made := random.IntN(tasks + 1)
				for range tasks - made {
					pass.Door.GiveBack(pass.Counted, 10)
				}
				mu.Lock()
				in += made
				mu.Unlock()
			}
		})
	}
	all.Wait()
	used, refused := table.Figures("t")
	if used.Pending != int64(in) || used.Bytes != 10*used.Pending || in > 1000 || in < 990 {
		t.Errorf("%+v wait, %d were let in, want 1000", used, in)
	}
	if (refused.Pending > 0) != (names.Pending > 0) || (refused.Bytes > 0) != (names.Bytes > 0) {
		t.Errorf("%+v were refused, want %+v", refused, names)
	}
	tenant := table.Of("t")
	tenant.Hold(500, 5000) // they come back from workers
	table.enqueue(t, "a", 1, 0, wanted{wire.CodeRateLimited, waitSeconds})
	tenant.Deliver([]shard.Effect{&shard.Freed{Places: in + 400, Bytes: 10 * int64(in+400)}})
	table.enqueue(t, "a", 900, 0, wanted{})
	table.enqueue(t, "a", 1, 0, wanted{wire.CodeRateLimited, waitSeconds})
}

// Uploads that all come at once take as many bytes as the limit has, exactly, and give them back; one
// that can never fit is told so.
func TestFilesOfATenantTakeRoom(t *testing.T) {
	var table Table
	none := table.Room("t")
	wantCode(t, "without a limit", none.Take(1<<60), "", 0)
	none.GiveBack()
	table.Set("t", wire.TenantLimits{ArtifactBytes: 1000}, 0)
	wantCode(t, "a file that is larger than the limit", table.Room("t").Take(1001), wire.CodeTooLarge, 0)
	tenant := table.Of("t")
	tenant.HoldFiles(100) // of a shard
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				room := table.Room("t")
				for room.Take(7) == nil && room.taken < 280 {
				}
				if used, _ := table.Figures("t"); used.Files > 1000 {
					t.Errorf("%d bytes are used", used.Files)
				}
				room.GiveBack()
			}
		})
	}
	all.Wait()
	room := table.Room("t")
	wantCode(t, "all that is left", room.Take(900), "", 0)
	wantCode(t, "one more", table.Room("t").Take(1), wire.CodeRateLimited, waitSeconds)
	tenant.Deliver([]shard.Effect{&shard.Freed{FileBytes: 100}})
	wantCode(t, "what was freed", table.Room("t").Take(100), "", 0)
	room.GiveBack()
	if used, refused := table.Figures("t"); used.Files != 100 || refused.Files < 2 {
		t.Errorf("used %+v, refused %+v", used, refused)
	}
}

func TestClaimsAndSessionsOfATenant(t *testing.T) {
	var table Table
	table.Set("t", wire.TenantLimits{
		DoorLimits: wire.DoorLimits{ClaimsPerSecond: 10, Sessions: 3}, PerCredential: wire.DoorLimits{Sessions: 2},
	}, 0)
	untake, _, refusal := table.Claim("t", "a", 100, 10_000)
	wantCode(t, "all that may be asked for at once", refusal, "", 0)
	if _, again, refusal := table.Claim("t", "a", 1, 10_000); again != 10_100 {
		t.Errorf("the next claim may be at %d, %v", again, refusal)
	}
	untake(99)
	_, _, refusal = table.Claim("t", "a", 99, 10_000)
	wantCode(t, "what was given back", refusal, "", 0)
	wantCode(t, "a session", table.Sessions("t", 2, 1), "", 0)
	wantCode(t, "a fourth session", table.Sessions("t", 3, 1), wire.CodeRateLimited, waitSeconds)
	wantCode(t, "a third session of one", table.Sessions("t", 2, 2), wire.CodeRateLimited, waitSeconds)
	wantCode(t, "a session of another tenant", table.Sessions("u", 99, 99), "", 0)
	if _, refused := table.Figures("t"); refused != (wire.RefusedByLimit{Claims: 1, Sessions: 2}) {
		t.Errorf("refused %+v", refused)
	}
}

// Subjects whose rates are full are forgotten, others never: nobody gets a second burst.
func TestNoSubjectGetsASecondBurstByBeingForgotten(t *testing.T) {
	var table Table
	table.Set("t", wire.TenantLimits{PerCredential: wire.DoorLimits{EnqueuesPerSecond: 1, Burst: 5}}, 0)
	table.enqueue(t, "a", 5, 60_000, wanted{})
	for n := range 3 * maxIdle {
		table.enqueue(t, strings.Repeat("x", n+1), 0+1, 60_000+int64(n%2), wanted{})
	}
	table.enqueue(t, "a", 2, 61_000, wanted{wire.CodeRateLimited, 1})
	table.enqueue(t, "a", 5, 65_000, wanted{})
	for n := range maxIdle + 1 {
		table.enqueue(t, strings.Repeat("y", n+1), 1, 120_000, wanted{})
	}
	if n := len(table.find("t").rules.Load().each.of); n > 2*maxIdle {
		t.Errorf("%d subjects are kept", n)
	}
}
