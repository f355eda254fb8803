package server

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"codeq/wire"
)

// keptLog is a log that a test reads while a server writes.
type keptLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *keptLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *keptLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func openLogged(t *testing.T, dir string, log *keptLog) *site {
	t.Helper()
	s, err := Open(Options{
		DataDir: dir, Listen: "127.0.0.1:0", Log: zerolog.New(log).Level(zerolog.TraceLevel), Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, s)
}

// A process that ends takes its sockets along, and not the sessions: the key is
// good at the next one, and what was delivered is in hand again.
func TestResumeOutlivesARestart(t *testing.T) {
	dir, log := t.TempDir(), new(keptLog)
	x := openLogged(t, dir, log)
	k := x.connect()
	welcome := hear[*wire.Welcome](k)
	k.say(`{"type":"subscribe","commands":["c"],"window":1,"leaseSeconds":60}`)
	posted := x.post(okTask)
	task := hear[*wire.TaskFrame](k)
	k.say(`{"type":"received","ref":1,"through":1}`)
	hear[*wire.OK](k)
	x.kill()

	y := openLogged(t, dir, log)
	waiting := y.dial()
	waiting.say(`{"type":"subscribe","ref":1,"commands":["c"]}`)
	hear[*wire.OK](waiting)
	k = y.say(fmt.Sprintf(`{"type":"hello","resume":%q}`, welcome.Resume))
	again := hear[*wire.Welcome](k)
	held := wire.TaskRef{TaskID: posted.ID, Token: task.Token}
	if again.SessionID != welcome.SessionID || len(again.Held) != 1 || again.Held[0] != held {
		t.Fatalf("resumed as %+v, want session %v with %v", again, welcome.SessionID, held)
	}
	k.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":%q,"leaseToken":%q,"result":{}}`, held.TaskID, held.Token))
	if ok := hear[*wire.OK](k); ok.TaskID != posted.ID {
		t.Errorf("ok names %v, want %v", ok.TaskID, posted.ID)
	}
	if got := y.read(posted.ID); got.Status != wire.StatusCompleted || got.Attempts != 0 || got.Deliveries != 1 {
		t.Errorf("the task ended as %+v", got)
	}
	_, seal, _ := strings.Cut(welcome.Resume, ".")
	if logged := log.String(); seal == "" || strings.Contains(logged, seal) || strings.Contains(logged, held.Token.String()) {
		t.Errorf("the log tells a secret:\n%s", logged)
	}
}
