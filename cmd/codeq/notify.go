//go:build unix && !clientonly

package main

import (
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// beatsPerPeriod is how often a supervisor hears of a server within the time after which it takes
// the server for dead.
const beatsPerPeriod = 4

// supervisor is who started this process and wants to hear how it goes, as systemd does for a unit
// with Type=notify: by datagrams to the socket NOTIFY_SOCKET, and with WATCHDOG_USEC again and again.
// Without one nothing is sent. Its methods may be called from any goroutine.
type supervisor struct {
	address *net.UnixAddr
	period  time.Duration
	log     zerolog.Logger
	warned  sync.Once
}

// supervisedBy reads who supervises this process from its environment.
func supervisedBy(env func(string) string, log zerolog.Logger) *supervisor {
	s := &supervisor{log: log}
	if name := env("NOTIFY_SOCKET"); name != "" {
		s.address = &net.UnixAddr{Name: name, Net: "unixgram"} // "@" begins an abstract name, for Go as for systemd
	}
	micros, err := strconv.ParseInt(env("WATCHDOG_USEC"), 10, 64)
	if pid := env("WATCHDOG_PID"); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.period = time.Duration(micros) * time.Microsecond / beatsPerPeriod
	}
	return s
}

// tell sends one assignment, such as READY=1. A server that cannot tell goes on.
func (s *supervisor) tell(assignment string) {
	if s.address == nil {
		return
	}
	socket, err := net.DialUnix("unixgram", nil, s.address)
	if err == nil {
		if _, err = socket.Write([]byte(assignment)); err == nil {
			err = socket.Close()
		}
	}
	if err != nil {
		s.warned.Do(func() { s.log.Warn().Err(err).Msg("the supervisor of this process could not be told how it goes") })
	}
}

// watch tells the supervisor each time that the server has beaten. The returned function returns
// when it does no more.
func (s *supervisor) watch(beat func() bool) (end func()) {
	if s.address == nil || s.period <= 0 {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		each := time.NewTicker(s.period)
		defer each.Stop()
		for {
			select {
			case <-each.C:
				if beat() {
					s.tell("WATCHDOG=1")
				}
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
