package server

import (
	"fmt"
	"os"
	"sort"
)

const (
	// minFiles is the least limit of open files that a server starts with.
	minFiles = 256
	// ownFiles are for everything but connections and tables of the store: the standard
	// streams, the listener, the poller, the watch of the token file; in the store two logs
	// and a spare one, the manifest and its markers, directories, the ballast, and the
	// outputs of flushes and compactions; a checkpoint, a page of metrics, and connections
	// that are being refused.
	ownFiles = 64
	// nodeFiles are for the log of a node of a cluster, its snapshots and the port of the nodes.
	nodeFiles = 96
	// usualFiles are open when a server starts; further ones were inherited and stay open.
	usualFiles = 16
	// minTables is the least number that Pebble keeps open; more than maxTables do not make
	// it faster.
	minTables = 64
	maxTables = 4096
	// anyFiles is the limit of a system that has none or does not tell it.
	anyFiles = 1 << 22
	// One connection of httpPart, and at least minHTTP, are for requests over HTTP and not for
	// sessions.
	httpPart = 8
	minHTTP  = 16
	// Sockets without a hello may take one connection of greetingPart.
	greetingPart = 4
)

// files is how the limit of open files is divided.
type files struct {
	limit int
	// inherited is how many were open before the server started.
	inherited int
	// tables is how many table files the store keeps open. Reads and compactions can keep as
	// many again open for longer than the store wants.
	tables int
	// connections bounds the connections of all clients, sessions those of them that are
	// sessions.
	connections, sessions int
	// node: it is that of a cluster. Each client has a second descriptor, the one by which it is
	// passed to the leader; there the nodes have as many connections as its own clients.
	node bool
}

// shareFiles divides a limit, which must be at least minFiles.
func shareFiles(limit, inherited int, node bool) files {
	f := files{limit: limit, inherited: inherited, node: node}
	left := limit - inherited - ownFiles
	if node {
		left -= nodeFiles
	}
	forTables := min(max(left/2, 2*minTables), 2*maxTables)
	if f.tables, f.connections = forTables/2, left-forTables; node {
		f.connections /= 2
	}
	f.sessions = f.connections - max(minHTTP, f.connections/httpPart)
	return f
}

// planFiles divides the limit of the system, or refuses one that is too low.
func planFiles(limit, open int, node bool) (files, error) {
	f := shareFiles(limit, max(0, open-usualFiles), node)
	least := minFiles + f.inherited
	if node {
		least += minFiles
	}
	if limit < least {
		return files{}, fmt.Errorf("the limit of open files is %d, and the server needs %d at the least: "+
			"raise it with ulimit -n, or LimitNOFILE= of a systemd unit", limit, least)
	}
	return f, nil
}

// needed is the least limit that allows so many sessions.
func (f files) needed(sessions int) int {
	return sort.Search(anyFiles, func(limit int) bool { return shareFiles(limit, f.inherited, f.node).sessions >= sessions })
}

// openFiles is how many files are open now; usualFiles if the system does not tell it.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return usualFiles
	}
	return len(entries)
}

// planFiles divides the limit of open files, and logs if it allows fewer sessions than the
// settings.
func (s *Server) planFiles() error {
	plan, err := planFiles(raiseFileLimit(), openFiles(), s.o.Cluster != nil)
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
