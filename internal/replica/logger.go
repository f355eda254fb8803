package replica

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
)

// newLogger hands what raft logs on, from level info on. Info of raft is debug here: it is
// of use to whoever looks for the cause of a failure.
func newLogger(log zerolog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Info, Output: io.Discard})
	l.RegisterSink(&adapter{log: log.With().Str("part", "raft").Logger()})
	return l
}

type adapter struct{ log zerolog.Logger }

// Accept implements hclog.SinkAdapter.
func (a *adapter) Accept(_ string, level hclog.Level, msg string, args ...any) {
	line := a.log.Debug()
	switch {
	case level >= hclog.Error && expected(msg, args):
	case level >= hclog.Error:
		line = a.log.Error()
	case level == hclog.Warn:
		line = a.log.Warn()
	}
	for i := 0; i+1 < len(args); i += 2 {
		name := fmt.Sprint(args[i])
		if name == zerolog.TimestampFieldName {
			name = "for" // that since a node was heard of
		}
		line.Str(name, fmt.Sprint(value(args[i+1])))
	}
	line.Msg(msg)
}

// expected reports whether an error of raft belongs to what is asked of a node. A leader looks for
// the entry before those that a node needs, and sends a snapshot if its log begins behind it: at a
// join. It steps down when it has handed over. A node that stops or leads no more closes connections,
// at which both sides may be busy.
func expected(msg string, args []any) bool {
	is := func(those ...error) bool {
		return slices.ContainsFunc(args, func(arg any) bool {
			err, _ := arg.(error)
			return slices.ContainsFunc(those, func(one error) bool { return errors.Is(err, one) })
		})
	}
	switch msg {
	case "failed to get log":
		return is(raft.ErrLogNotFound)
	case "failed to decode incoming command", "failed to flush response":
		return is(net.ErrClosed, raft.ErrTransportShutdown, syscall.EPIPE, syscall.ECONNRESET)
	}
	return msg == "peer has newer term, stopping replication"
}

// value is what an argument of hclog stands for: a Format is a slice of the format and its
// values.
func value(arg any) any {
	if f, is := arg.(hclog.Format); is && len(f) > 0 {
		return fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
	}
	return arg
}
