package server

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// What is shared never exceeds the limit, also when the store holds every table
// twice as far as it keeps them, and grows with it.
func TestN14FilesAreSharedWithinTheLimit(t *testing.T) {
	last := files{}
	for limit := minFiles; limit < 100_000; limit++ {
		f, err := planFiles(limit, usualFiles, false)
		if err != nil {
			t.Fatal(err)
		}
		if sum := ownFiles + 2*f.tables + f.connections; sum > limit {
			t.Fatalf("%d of %d are shared: %+v", sum, limit, f)
		}
		if f.connections < last.connections || f.tables < last.tables || f.sessions < last.sessions {
			t.Fatalf("%+v after %+v", f, last)
		}
		if f.sessions < 48 || f.connections-f.sessions < minHTTP || f.tables < minTables {
			t.Fatalf("too little: %+v", f)
		}
		last = f
	}
	f := shareFiles(1024, 0, false)
	for _, sessions := range []int{1, 420, 421, 10_000, 1_000_000} {
		n := f.needed(sessions)
		if got := shareFiles(n, 0, false).sessions; got < sessions || shareFiles(n-1, 0, false).sessions >= sessions {
			t.Errorf("%d sessions need %d, which give %d", sessions, n, got)
		}
	}
}

// docs/config.md has these.
func TestN14FilesAreSharedAsTheDocumentSays(t *testing.T) {
	for limit, want := range map[int]files{
		256:    {limit: 256, tables: 64, connections: 64, sessions: 48},
		1024:   {limit: 1024, tables: 240, connections: 480, sessions: 420},
		4096:   {limit: 4096, tables: 1008, connections: 2016, sessions: 1764},
		20_000: {limit: 20_000, tables: 4096, connections: 11_744, sessions: 10_276},
	} {
		if got := shareFiles(limit, 0, false); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestN14InheritedFilesCount(t *testing.T) {
	_, err := planFiles(300, usualFiles+50, false)
	if err == nil || !strings.Contains(err.Error(), "needs 306 ") {
		t.Errorf("300 with 50 inherited: %v", err)
	}
	if f, err := planFiles(306, usualFiles+50, false); err != nil || f.connections != shareFiles(256, 0, false).connections {
		t.Errorf("%+v, %v", f, err)
	}
}

// Without max-sessions there are as many sessions as the limit leaves room for, so
// that connections are left for requests.
func TestN14SessionsAreBoundWhateverTheSettingSays(t *testing.T) {
	for _, wanted := range []int{0, 1, anyFiles} {
		s := &Server{port: &port{o: Options{MaxSessions: wanted, Log: zerolog.Nop()}}}
		if err := s.planFiles(); err != nil {
			t.Fatal(err)
		}
		if most := s.o.MaxSessions; most < 1 || most > s.files.sessions || wanted == 1 && most != 1 {
			t.Errorf("with max-sessions %d there may be %d sessions, of %+v", wanted, most, s.files)
		}
	}
}

// A node of a cluster has two descriptors for a client that it passes to the leader, and the leader
// as many connections for what is passed as for clients of its own.
func TestFilesOfANodeAreEnoughForWhatIsPassed(t *testing.T) {
	if _, err := planFiles(511, usualFiles, true); err == nil || !strings.Contains(err.Error(), "needs 512 ") {
		t.Errorf("511: %v", err)
	}
	for _, limit := range []int{512, 1024, 4096, 1 << 20} {
		f, err := planFiles(limit, usualFiles, true)
		if err != nil {
			t.Fatal(err)
		}
		if sum := ownFiles + nodeFiles + 2*f.tables + 2*f.connections; sum > limit || sum < limit-2 || f.sessions < 48 || f.tables < minTables {
			t.Errorf("%d of %d are shared: %+v", sum, limit, f)
		}
	}
}
