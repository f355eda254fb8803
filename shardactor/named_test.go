package shardactor

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

func limitsKey(tenant string) record.NamedKey {
	return record.NamedKey{Tenant: tenant, Kind: record.KindLimits}
}

// name changes a named record and waits until every shard has it.
func (e *testEngine) name(t *testing.T, tenant, value string) record.Named {
	t.Helper()
	var now record.Named
	var failed *wire.Error
	answers := 0
	e.Name(&Naming{What: shard.NameChange{Key: limitsKey(tenant), Value: value, IfVersion: -1}, Done: func(n record.Named, refusal *wire.Error) {
		now, failed = n, refusal
		answers++
	}})
	synctest.Wait()
	if failed != nil || answers != 1 || now.Value != value {
		t.Fatalf("%d answers, the last %+v, %v", answers, now, failed)
	}
	return now
}

// namedOnDisk is what recovery finds in each shard, once the engine has stopped.
func namedOnDisk(t *testing.T, disk vfs.FS) (all [][]store.NamedState) {
	t.Helper()
	s, err := store.Open(store.Options{FS: disk, Dir: "data", Fatal: noFatal})
	if err != nil {
		t.Fatal(err)
	}
	for shardNo := range s.Shards() {
		r, err := s.Span(shardNo).Load()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Named)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Records of several tenants are made, changed and deleted; a crash comes when only the
// home knows of the last changes. The next start brings every shard what the home has.
func TestNamedRecordsReachEveryShardAfterACrashHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		first := e.name(t, "acme", "1")
		for n := range 8 {
			e.name(t, fmt.Sprint("t", n), "1")
		}
		if got := e.Named("acme", record.KindLimits); len(got) != 1 || got[0] != first || len(e.Named("none", record.KindLimits)) != 0 {
			t.Errorf("acme has %+v, want %+v", got, first)
		}
		for n := range 8 {
			tenant := fmt.Sprint("t", n)
			what := shard.NameChange{Key: limitsKey(tenant), Value: []string{"2", ""}[n%2], IfVersion: -1}
			e.Post(wire.ShardOfTenant(tenant, 4), []shard.Message{&shard.Name{NameChange: what}}, 1, mailbox.ClassKeep)
		}
		synctest.Wait()
		mustFindNothing(t, e)
		e.stop()

		e = startTestEngine(t, 4, disk, noFatal)
		e.name(t, "zeta", "1") // a message, so that every shard has had a round
		e.enqueue(t, nil, 40, wire.EnqueueRequest{Command: "a", Payload: []byte("1")})
		e.spread(t)
		synctest.Wait()
		for n := range 8 {
			got := e.Named(fmt.Sprint("t", n), record.KindLimits)
			if deleted := n%2 == 1; deleted != (len(got) == 0) || !deleted && got[0].Value != "2" {
				t.Errorf("tenant %d has %+v", n, got)
			}
		}
		mustFindNothing(t, e)
		e.stop()
		all := namedOnDisk(t, disk)
		for shardNo := range all {
			if len(all[shardNo]) != 6 || !slices.Equal(all[shardNo], all[0]) {
				t.Errorf("shard %d has %+v, shard 0 %+v", shardNo, all[shardNo], all[0])
			}
		}
	})
}

// Many who change one record at the same time each get an answer, and all shards end
// with the record that readers see.
func TestChangesOfANamedRecordAtTheSameTimeEndInOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		const changes = 40
		answers := make(chan record.Named, changes)
		for n := range changes {
			value := fmt.Sprint(n)
			if n%3 == 0 {
				value = ""
			}
			go e.Name(&Naming{
				What: shard.NameChange{Key: limitsKey("acme"), Value: value, IfVersion: -1},
				Done: func(now record.Named, refusal *wire.Error) {
					if refusal != nil {
						panic(refusal.Error())
					}
					answers <- now
				},
			})
		}
		for range changes {
			<-answers
		}
		last := e.Named("acme", record.KindLimits)
		mustFindNothing(t, e)
		e.stop()
		all := namedOnDisk(t, disk)
		for shardNo := range all {
			if len(all[shardNo]) != len(last) || len(last) == 1 && all[shardNo][0].Named != last[0] {
				t.Errorf("shard %d has %+v, readers see %+v", shardNo, all[shardNo], last)
			}
		}
	})
}

// A record that the home cannot read is replaced by a copy, one of another shard by that
// of the home.
func TestADamagedNamedRecordIsReplacedByACopy(t *testing.T) {
	for _, home := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			disk := vfs.NewMem()
			e := startTestEngine(t, 2, disk, noFatal)
			e.name(t, "acme", "1")
			damaged := wire.ShardOfTenant("acme", 2)
			if !home {
				damaged = 1 - damaged
			}
			key := record.AppendNamedKey(record.AppendSpan(nil, damaged), limitsKey("acme"))
			if err := e.store.Rewrite([]store.Change{{Key: key, Value: []byte("x")}}); err != nil {
				t.Fatal(err)
			}
			e.stop()
			e = startTestEngine(t, 2, disk, noFatal)
			e.name(t, "zeta", "1")
			if got := e.Named("acme", record.KindLimits); len(got) != 1 || got[0].Value != "1" {
				t.Errorf("the record is %+v", got)
			}
			mustFindNothing(t, e)
			e.stop()
			for shardNo, found := range namedOnDisk(t, disk) {
				if len(found) != 2 || found[0].Value != "1" {
					t.Errorf("shard %d has %+v", shardNo, found)
				}
			}
		})
	}
}
