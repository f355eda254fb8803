package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
)

// What a join and a stop bring is no error. A name that the log uses itself stands in a line once.
func TestWhatRaftSaysOfNormalEventsIsNoError(t *testing.T) {
	closed := &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	for _, c := range []struct {
		msg   string
		args  []any
		level string
	}{
		{"failed to get log", []any{"index", 1, "error", raft.ErrLogNotFound}, "debug"},
		{"failed to get log", []any{"index", 1, "error", errors.New("checksum")}, "error"},
		{"failed to decode incoming command", []any{"error", closed}, "debug"},
		{"failed to decode incoming command", []any{"error", raft.ErrTransportShutdown}, "debug"},
		{"failed to decode incoming command", []any{"error", errors.New("unknown rpc type 9")}, "error"},
		{"failed to flush response", []any{"error", &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}}, "debug"},
		{"peer has newer term, stopping replication", []any{"peer", "a"}, "debug"},
		{"failed to append to logs", []any{"error", fmt.Errorf("sync: %w", net.ErrClosed)}, "error"},
		{"failed to contact", []any{"server-id", "a", "time", time.Second}, "error"},
		{"an odd number of arguments", []any{"error"}, "error"},
	} {
		var out bytes.Buffer
		newLogger(zerolog.New(&out).With().Timestamp().Logger()).Error(c.msg, c.args...)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["level"] != c.level || line["message"] != c.msg || line["part"] != "raft" {
			t.Errorf("%s %v, want level %s: %v, %s", c.msg, c.args, c.level, err, &out)
		}
		for name := range line {
			if n := strings.Count(out.String(), `"`+name+`":`); n != 1 {
				t.Errorf("%s stands %d times in %s", name, n, &out)
			}
		}
	}
}
