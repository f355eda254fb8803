package auth

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"codeq/wire"
)

func TestTheWordsOfTokenFilesStandForScopes(t *testing.T) {
	for word, want := range map[string][]string{
		"producer": {ScopeProduce}, "worker": WorkerScopes(), "admin": {ScopeAdmin}, "operator": {ScopeAdminAll}, "root": {},
		"codeq:claim": {ScopeClaim}, "read": {ScopeRead}, "codeq:read": {ScopeView},
	} {
		slices.Sort(want)
		if got := ExpandScopes([]string{word, word, "openid"}); !slices.Equal(got, want) {
			t.Errorf("%s stands for %q, want %q", word, got, want)
		}
	}
}

func TestWhatAScopeHas(t *testing.T) {
	for scope, has := range map[string]string{
		ScopeAdminAll: "codeq:admin codeq:admin:all codeq:read", ScopeAdmin: "codeq:admin codeq:read", ScopeView: "codeq:read",
		ScopeProduce: "codeq:produce", ScopeRead: "read", ScopeClaim: "codeq:claim",
	} {
		p := &Principal{Tenant: "t", Subject: "s", Scopes: []string{scope}}
		for _, other := range Scopes() {
			if want := slices.Contains(strings.Fields(has), other); p.Has(other) != want || (p.CheckScope(other) == nil) != want {
				t.Errorf("%s has %s: %t", scope, other, !want)
			}
		}
	}
}

func TestCommandsAreNamesAndPrefixes(t *testing.T) {
	for _, c := range []struct {
		list           string
		may, mayNot    string
		sees, seesNot  string
		asksForAll     string
		allRefusedWith string
	}{
		{list: "a", may: "a", mayNot: "b,a.b,*", sees: "a", seesNot: "b", asksForAll: "a"},
		{list: "build.*,a", may: "build.x,build.x.y,a", mayNot: "build,buildx,c", sees: "build.x", seesNot: "build", allRefusedWith: "build.*"},
		{list: "*", may: "a,b", sees: "c", asksForAll: "*"},
		{list: "", mayNot: "a", sees: "a", asksForAll: ""},
	} {
		p := &Principal{Commands: CommandsOf(split(c.list))}
		for _, command := range split(c.may) {
			if p.CheckCommand(command) != nil {
				t.Errorf("%q may not use %s", c.list, command)
			}
		}
		for _, command := range split(c.mayNot) {
			if _, refusal := p.Allowed([]string{command}); command != "*" && (p.MayUse(command) || refusal == nil) {
				t.Errorf("%q may use %s", c.list, command)
			}
		}
		for _, command := range split(c.sees) {
			if p.CheckSight(command) != nil {
				t.Errorf("%q does not see %s", c.list, command)
			}
		}
		for _, command := range split(c.seesNot) {
			if p.MaySee(command) {
				t.Errorf("%q sees %s", c.list, command)
			}
		}
		all, refusal := p.Allowed([]string{wire.AllCommands})
		if c.allRefusedWith != "" {
			if refusal == nil || !strings.Contains(refusal.Sentence, c.allRefusedWith) {
				t.Errorf("%q asks for all: %q, %v", c.list, all, refusal)
			}
		} else if refusal != nil || strings.Join(all, ",") != c.asksForAll {
			t.Errorf("%q asks for all: %q, %v", c.list, all, refusal)
		}
	}
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func TestOnlyAnAdminOfAllActsForAnotherTenant(t *testing.T) {
	one, all := &Principal{Tenant: "one", Scopes: []string{ScopeAdmin}}, &Principal{Tenant: "one", Scopes: []string{ScopeAdminAll}}
	if p, refusal := one.For("one"); p != one || refusal != nil {
		t.Errorf("for its own: %v, %v", p, refusal)
	}
	if p, refusal := one.For("two"); p != nil || refusal.Code != wire.CodeForbidden {
		t.Errorf("an admin of one: %v, %v", p, refusal)
	}
	if p, refusal := all.For("two"); refusal != nil || p.Tenant != "two" || all.Tenant != "one" {
		t.Errorf("an admin of all: %v, %v", p, refusal)
	}
	if p, refusal := all.For(""); p != all || refusal != nil {
		t.Errorf("for nobody in particular: %v, %v", p, refusal)
	}
	for _, lines := range [][]string{{"a\x00"}, {""}, {"one", "two"}} {
		if name, refusal := NamedTenant(http.Header{HeaderTenant: lines}); name != "" || refusal == nil || refusal.Code != wire.CodeInvalidArgument {
			t.Errorf("%q names %q, %v", lines, name, refusal)
		}
	}
}

func TestASocketOfAnAdminOfAllEndsWithItsScope(t *testing.T) {
	tokens := open(t, entryOf("one", "  scopes: [operator]\n"))
	who, _ := tokens.Authenticate(t.Context(), "one")
	acting, _ := who.For("two")
	if now := acting.Current(); now == nil || !now.SameRights(acting) {
		t.Errorf("it acts as %+v", now)
	}
	write(t, tokens.File(), entryOf("one", "  scopes: [admin]\n"))
	if _, err := tokens.Reload(); err != nil {
		t.Fatal(err)
	}
	if now := acting.Current(); now != nil {
		t.Errorf("without the scope it acts as %+v", now)
	}
}
