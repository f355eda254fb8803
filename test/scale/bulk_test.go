package scale

import (
	"flag"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
)

var bulkTasks = flag.Int("scale.bulk", 2000, "ready tasks of one queue, of which three hundredths are cancelled by filter")

// TestWrongTasksAreCancelledByFilter shows how long it takes to count and to cancel
// three hundredths of the tasks of one queue, by a member of their payload. It fails
// only on a wrong answer.
func TestWrongTasksAreCancelledByFilter(t *testing.T) {
	b := &bench{t: t, server: blackbox.Serve(t)}
	b.api = blackbox.NewAPI(b.server.Addr)
	defer b.api.Close()
	b.postImports(*bulkTasks)
	program, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	wrong := *bulkTasks * 3 / 100
	for _, c := range []struct {
		want string
		more []string
	}{{"would be cancelled", []string{"--dry-run"}}, {"are cancelled", nil}} {
		args := append([]string{"task", "cancel", "mail", "--match", "import=wrong", "--url", b.server.URL()}, c.more...)
		began := time.Now()
		said, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		t.Logf("%d of %d tasks %s after %v", wrong, *bulkTasks, c.want, time.Since(began).Round(time.Millisecond))
		if want := fmt.Sprintf("%d tasks of mail %s", wrong, c.want); err != nil || !strings.Contains(string(said), want) {
			t.Errorf("%v, said %.300q, want %q", err, said, want)
		}
	}
	var q struct{ Ready int }
	asker{t, b.api}.do(http.MethodGet, "/admin/queues/mail", "", &q)
	if q.Ready != *bulkTasks-wrong {
		t.Errorf("%d tasks are left, want %d", q.Ready, *bulkTasks-wrong)
	}
}

// postImports makes tasks of one queue, three of a hundred of a wrong import.
func (b *bench) postImports(n int) {
	b.t.Helper()
	batches, posted := b.poster()
	for from := 0; from < n; from += batchTasks {
		items := make([]string, 0, batchTasks)
		for i := from; i < min(from+batchTasks, n); i++ {
			word := "right"
			if i*7919%100 < 3 {
				word = "wrong"
			}
			items = append(items, fmt.Sprintf(`{"command":"mail","payload":{"import":%q,"customer":%d,"to":"somebody%d@example.com"}}`, word, i%5000, i))
		}
		batches <- items
	}
	posted()
}
