package replica

import (
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"
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
	case level >= hclog.Error:
		line = a.log.Error()
	case level == hclog.Warn:
		line = a.log.Warn()
	}
	for i := 0; i+1 < len(args); i += 2 {
		line.Str(fmt.Sprint(args[i]), fmt.Sprint(value(args[i+1])))
	}
	line.Msg(msg)
}

// value is what an argument of hclog stands for: a Format is a slice of the format and its
// values.
func value(arg any) any {
	if f, is := arg.(hclog.Format); is && len(f) > 0 {
		return fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
	}
	return arg
}
