package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"codeq/wire"
)

// subscriptions are one of every kind, for a queue c and a task ID.
var subscriptions = []string{
	`"queues"`, `"events","from":{"0":0,"1":0,"2":0,"3":0}`, `"events","commands":["c"],"from":{"0":0,"1":0,"2":0,"3":0}`,
	`"workers"`, `"server"`, `"page","command":"c","state":"ready"`, `"page","filter":{"command":"c"}`, `"page","filter":{}`, `"task","taskId":"ID"`,
}

// The hello of every socket, the first and one that renews, refuses every bad token, and no frame is
// taken before a good one.
func TestEveryFrameRefusesABadToken(t *testing.T) {
	log := &lockedBuffer{}
	x, i := openIssued(t, log)
	good := i.token("one")
	x.as(good).post(`{"command":"c","payload":"CANARY"}`)
	bad := i.badTokens()
	delete(bad, "")
	s := x.as(good).dial()
	for token, code := range bad {
		s.say(fmt.Sprintf(`{"type":"hello","ref":5,"token":%q}`, token))
		if e, ok := s.next().(*wire.ErrorFrame); !ok || e.Err.Code != code || strings.Contains(e.Err.Error(), "CANARY") {
			t.Errorf("a session renewed with %.20s…: %+v", token, e)
		}
		hello, first := fmt.Sprintf(`{"type":"hello","token":%q}`, token), fmt.Sprintf(`{"type":"hello","token":%q}`, good)
		for _, messages := range [][]string{{hello}, {first, hello}} {
			if text, closed := x.heard(messages...); closed != 4401 || strings.Contains(text, "CANARY") {
				t.Errorf("a socket of events with %.20s… after %d good ones: %d %s", token, len(messages)-1, closed, text)
			}
		}
	}
	s.say(`{"type":"enqueue","ref":7,"command":"c","payload":1}`)
	hear[*wire.OK](s)
	for _, name := range clientFrames(t) {
		if name == "Hello" {
			continue
		}
		k := x.say(fmt.Sprintf(`{"type":%q,"ref":1,"commands":["c"],"window":1}`, strings.ToLower(name)))
		if code := k.closeCode(); code != 4400 {
			t.Errorf("%s before a hello: closed with %d", name, code)
		}
	}
	for _, kind := range subscriptions {
		text, code := x.heard(fmt.Sprintf(`{"type":"subscribe","id":"a","kind":%s}`, strings.Replace(kind, "ID", unknownID, 1)))
		if code != 4400 || strings.Contains(text, "CANARY") {
			t.Errorf("a subscription %s before a hello: %d %s", kind, code, text)
		}
	}
	if said := log.text(); strings.Contains(said, "CANARY") || strings.Contains(said, good) || strings.Count(said, `"what":"hello"`) < 2 {
		t.Errorf("the log: %s", said)
	}
}

// Every frame and every kind of subscription, for a good token that lacks the scope, the command or
// the tenant: nothing of the task comes out.
func TestEveryFrameAndSubscriptionNeedsItsRights(t *testing.T) {
	log := &lockedBuffer{}
	x, i := openIssued(t, log)
	task := x.as(i.token("one")).post(`{"command":"c","payload":"CANARY","idempotencyKey":"CANARY"}`)
	id := task.ID.String()
	ask := []string{}
	for n, kind := range subscriptions {
		ask = append(ask, fmt.Sprintf(`{"type":"subscribe","id":"s%d","kind":%s}`, n, strings.Replace(kind, "ID", id, 1)))
	}
	ask = append(ask, `{"type":"unsubscribe","id":"s0","ref":77}`)
	for what, token := range map[string]string{
		"missing scope": i.token("one", "scope", "codeq:claim"), "missing command": i.token("one", "eventTypes", []string{"d", "c.*"}), "wrong tenant": i.token("two"),
	} {
		text, code := x.heard(append([]string{fmt.Sprintf(`{"type":"hello","token":%q}`, token)}, ask...)...)
		if (code == 4401) != (what == "missing scope") || what != "missing scope" && code != 0 {
			t.Errorf("%s: the socket is closed with %d", what, code)
		}
		if strings.Contains(text, "CANARY") || strings.Contains(text, `"command":"c"`) || strings.Contains(text, `"taskId":"`+id) {
			t.Errorf("%s: %s", what, text)
		}
		if status := x.as(token).stream("kind=task&taskId=" + id); status != http.StatusNotFound && status != http.StatusForbidden {
			t.Errorf("%s: a stream of the task is answered with %d", what, status)
		}
		if status := x.as(token).stream("kind=events&commands=c"); (status == http.StatusForbidden) != (what == "missing scope") {
			t.Errorf("%s: a stream of events is answered with %d", what, status)
		}
		k := x.as(token).dial()
		for name, form := range map[string]string{
			"Enqueue": `"command":"c","payload":1,"idempotencyKey":"CANARY"`, "Subscribe": `"commands":["c"],"window":1`, "Cancel": `"taskId":"` + id + `"`,
		} {
			k.say(fmt.Sprintf(`{"type":%q,"ref":9,%s}`, strings.ToLower(name), form))
			if what == "wrong tenant" && name != "Cancel" {
				hear[*wire.OK](k) // in its own tenant
				continue
			}
			want := wire.CodeForbidden
			if name == "Cancel" && what != "missing scope" {
				want = wire.CodeTaskNotFound
			}
			e := hearRefusal(k)
			if e.Err.Code != want && !(name == "Cancel" && e.Err.Code == wire.CodeForbidden && what == "missing command") {
				t.Errorf("%s: %s is answered %+v", what, name, e.Err)
			}
		}
	}
	// The log has who was refused, where the credential is good.
	if said := log.text(); !strings.Contains(said, `"what":"hello","code":"forbidden","tenant":"one","subject":"s"`) || strings.Contains(said, "CANARY") {
		t.Errorf("the log: %s", said)
	}
	if task := x.as(i.token("one")).read(task.ID); task.Status != wire.StatusPending || task.Deliveries != 0 {
		t.Errorf("the task was changed: %+v", task)
	}
}

// The log has everybody who acts for another tenant, or tries to, with the own tenant, and no body.
func TestTheLogHasWhoActsForAnotherTenant(t *testing.T) {
	log := &lockedBuffer{}
	x, i := openIssued(t, log)
	all := x.as(i.token("ops", "scope", "codeq:admin:all", "sub", "boss"))
	x.as(i.token("one", "sub", "climber")).over("two")
	all.over("two")
	if said := log.text(); strings.Contains(said, "CANARY") || !strings.Contains(said, `"code":"forbidden","tenant":"one","subject":"climber"`) ||
		!strings.Contains(said, `"tenant":"two","subject":"boss"`) || !strings.Contains(said, `"ofTenant":"ops"`) {
		t.Errorf("the log: %s", said)
	}
}

// over sets a queue of another tenant.
func (x *site) over(tenant string) {
	x.t.Helper()
	x.browse(page{"PUT", "/v1/codeq/admin/queues/c", `{"CANARY":1}`, map[string]string{"Authorization": "Bearer " + x.token, "X-Codeq-Tenant": tenant}})
}

// hearRefusal is the next refusal; what else comes before it is left out.
func hearRefusal(k *socket) *wire.ErrorFrame {
	k.t.Helper()
	for {
		if e, ok := k.next().(*wire.ErrorFrame); ok {
			return e
		}
	}
}
