package wire

import (
	"strings"
	"testing"
)

// FuzzParseLimits reads limits of tenants whatever they are, and wants what was read to
// be the same when it is written.
func FuzzParseLimits(f *testing.F) {
	f.Add([]byte(`{"tenantId":"t","enqueuesPerSecond":1,"burst":2,"claimsPerSecond":3,"sessions":4,"pendingTasks":5,"weight":6,
		"perCredential":{"enqueuesPerSecond":7,"burst":8},"version":9,"used":{"pendingTasks":10,"sessions":11},"refused":{"sessions":12}}`))
	f.Add([]byte(`{"limits":[{"tenantId":"t"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, refusal := ParseLimitsChange(data); refusal == nil {
			if again, refusal := ParseLimitsChange(AppendLimitsChange(nil, l)); refusal != nil || *again != *l {
				t.Fatalf("%+v came back as %+v (%v)", l, again, refusal)
			}
			if again, err := ParseTenantLimits(AppendTenantLimits(nil, &l.TenantLimits)); err != nil || *again != l.TenantLimits {
				t.Fatalf("%+v came back as %+v (%v)", l, again, err)
			}
		}
		if _, err := ParseTenantLimits(data); err != nil && err.Error() == "" {
			t.Fatal("no words")
		}
		if figures, err := ParseLimitsFigures(data); err == nil {
			if again, err := ParseLimitsFigures(AppendLimitsFigures(nil, figures)); err != nil || *again != *figures {
				t.Fatalf("%+v came back as %+v (%v)", figures, again, err)
			}
		}
		if list, err := ParseLimitsList(data); err == nil && list == nil {
			t.Fatal("no list and no error")
		}
	})
}

func TestLimitsOfATenantAreRead(t *testing.T) {
	l, refusal := ParseLimitsChange([]byte(`{"enqueuesPerSecond":10,"perCredential":{"sessions":2},"weight":3,"version":7}`))
	if refusal != nil || l.EnqueuesPerSecond != 10 || l.BurstInForce() != 10 || l.PerCredential.Sessions != 2 || l.Weight != 3 || l.Version != 7 {
		t.Errorf("read %+v, %v", l, refusal)
	}
	for body, want := range map[string]string{
		`{"weight":101}`:                          "weight must be an integer from 1 to 100",
		`{"burst":5}`:                             "burst needs enqueuesPerSecond",
		`{"perCredential":{"weight":1}}`:          "perCredential.",
		`{"enqueuePerSecond":1}`:                  "enqueuesPerSecond",
		`{"enqueuesPerSecond":1,"sessions":0}`:    "sessions",
		`{"pendingTasks":1000000001}`:             "pendingTasks",
		`{"perCredential":{"claimsPerSecond":0}}`: "perCredential.claimsPerSecond",
	} {
		if _, refusal := ParseLimitsChange([]byte(body)); refusal == nil || !strings.Contains(refusal.Sentence, want) {
			t.Errorf("%s: %v, want %q", body, refusal, want)
		}
	}
}
