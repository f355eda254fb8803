package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"codeq/wire"
)

// A worker that goes when it has the answer must not leave tasks that were on
// their way: to the server they have arrived, by the pong of its library.
func TestNoTaskComesBehindTheAnswerToAWindowOf0(t *testing.T) {
	for _, stop := range []string{`{"type":"window","ref":9,"size":0}`, `{"type":"drain","ref":9}`} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, setup{})
			worker, _ := b.open(`{"type":"hello"}`)
			worker.say(`{"type":"subscribe","ref":1,"commands":["a"],"window":0}`)
			next[*wire.OK](worker)
			producer, _ := b.open(`{"type":"hello"}`)
			frame := `{"type":"enqueue","command":"a","payload":1},`
			producer.say("[" + strings.Repeat(frame, 199) + strings.TrimSuffix(frame, ",") + "]")
			synctest.Wait()
			for n := range 20 {
				worker.say(fmt.Sprintf(`{"type":"window","size":%d}`, 5*(n+1)))
				worker.say(stop)
				worker.tasksBeforeAnswer(9)
				worker.silent()
			}
		})
	}
}

// tasksBeforeAnswer reads to the answer of a request.
func (c *client) tasksBeforeAnswer(ref int64) (tasks int) {
	c.t.Helper()
	for {
		switch f := (<-c.frames).(type) {
		case *wire.TaskFrame:
			tasks++
		case *wire.OK:
			if f.Ref.Value == ref {
				return tasks
			}
		default:
			c.t.Fatalf("got %s", wire.AppendServerFrame(nil, f))
		}
	}
}
