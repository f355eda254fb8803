package server

import (
	"fmt"
	"os"
	"sort"
)

const (
	// minFiles is the least limit of open files that a server starts with.
	minFiles = 256
	// ownFiles are for what is neither a connection nor a table of the store:
	// streams, listener, the poller, the watch over the tokens; of the store the
	// log and the one before it, the manifest and its markers, directories, the
	// spare log, the ballast, and the outputs of flushes and compactions; a
	// checkpoint, a page of metrics, and connections that are being refused.
	ownFiles = 64
	// usualFiles are open when a server begins; what is more was inherited, and
	// stays open.
	usualFiles = 16
	// minTables is the least that Pebble keeps, and more than maxTables help
	// nothing.
	minTables = 64
	maxTables = 4096
	// anyFiles stands for a limit that nobody knows or that is none.
	anyFiles = 1 << 22
	// Sessions leave one connection of so many, and so many at the least, to
	// requests over HTTP.
	httpPart = 8
	minHTTP  = 16
	// Sockets without a hello may take one connection of so many.
	greetingPart = 4
)

// files is how the limit of open files is shared.
type files struct {
	limit int
	// inherited are those that were open before the server began.
	inherited int
	// tables is how many files of tables the store keeps open. Reads and
	// compactions may hold as many again that the store would have closed.
	tables int
	// connections are those of all clients, and sessions the most of them that may
	// be sessions.
	connections, sessions int
}

// shareFiles divides a limit. It is no good below minFiles.
func shareFiles(limit, inherited int) files {
	f := files{limit: limit, inherited: inherited}
	left := limit - inherited - ownFiles
	forTables := min(max(left/2, 2*minTables), 2*maxTables)
	f.tables, f.connections = forTables/2, left-forTables
	f.sessions = f.connections - max(minHTTP, f.connections/httpPart)
	return f
}

// planFiles counts what the server may need against the limit of the system.
func planFiles(limit, open int) (files, error) {
	f := shareFiles(limit, max(0, open-usualFiles))
	if least := minFiles + f.inherited; limit < least {
		return files{}, fmt.Errorf("the limit of open files is %d, and the server needs %d at the least: "+
			"raise it with ulimit -n, or LimitNOFILE= of a systemd unit", limit, least)
	}
	return f, nil
}

// needed is the least limit with which so many sessions may be open.
func (f files) needed(sessions int) int {
	return sort.Search(anyFiles, func(limit int) bool { return shareFiles(limit, f.inherited).sessions >= sessions })
}

// openFiles counts what is open now; what the system does not tell is taken as
// usual.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return usualFiles
	}
	return len(entries)
}

// planFiles decides how many files and connections the server has open at most,
// and says so if that is less than the settings ask for.
func (s *Server) planFiles() error {
	plan, err := planFiles(raiseFileLimit(), openFiles())
	if err != nil {
		return err
	}
	s.files = plan
	wanted := s.o.MaxSessions
	if wanted > 0 && wanted <= plan.sessions {
		return nil
	}
	s.o.MaxSessions = plan.sessions
	if wanted > 0 {
		s.o.Log.Warn().Int("limit", plan.limit).Int("connections", plan.connections).Int("sessions", plan.sessions).
			Int("tables", plan.tables).Int("maxSessions", wanted).Int("needed", plan.needed(wanted)).
			Msg("the limit of open files is too low for max-sessions: raise it with ulimit -n, or LimitNOFILE= of a systemd unit, or lower max-sessions")
	}
	return nil
}
