package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
)

// killed is what is left of a directory when its process is killed: everything
// that was written, synced or not.
func killed(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(9, 9))})
}

// logged is how often killedDir writes six tasks to the log.
const logged = 2

// killedDir has tasks in a table and in the newest log.
func killedDir(t *testing.T) *vfs.MemFS {
	t.Helper()
	return killedDirOf(t, logged)
}

func killedDirOf(t *testing.T, logged int) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	plantIn(s, 0).garden(t, record.QueueKey{Command: "table", Tenant: "t"})
	barrier(t, s)
	flush(t, s)
	p := plantIn(s, 1)
	for n := range logged {
		p.garden(t, record.QueueKey{Command: fmt.Sprint("log", n), Tenant: "t"})
		barrier(t, s)
	}
	return killed(fs)
}

// looked is what doctor and server make of a directory: refused, reported, or the
// tasks that it holds.
func looked(t *testing.T, fs vfs.FS, open func(Options) (*Store, error)) (tasks int, objection string) {
	t.Helper()
	s, err := open(optionsIn(fs, func(o *Options) { o.MustExist, o.DisableAutomaticCompactions = true, true }))
	if err != nil {
		mustBeRefused(t, err)
		return 0, err.Error()
	}
	defer closeStore(t, s)
	findings, err := Audit.Check(s)
	if err != nil {
		mustBeRefused(t, err)
		return 0, err.Error()
	}
	if len(findings) > 0 {
		return 0, findings[0].Text
	}
	return len(tasksIn(t, s)), ""
}

var remedies = regexp.MustCompile(`restore the|name the|put back the|use the program|start a server`)

// mustBeRefused demands a file and a remedy of what stops a start.
func mustBeRefused(t *testing.T, err error) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.File == "" || !remedies.MatchString(refused.Sentence) {
		t.Errorf("an end without a file and a remedy: %v", err)
	}
}

// filesOf are the files of the directory and of the database in it.
func filesOf(t *testing.T, fs vfs.FS) (files []string) {
	t.Helper()
	for _, dir := range []string{"data", "data/db"} {
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name != databaseName {
				files = append(files, dir+"/"+name)
			}
		}
	}
	slices.Sort(files)
	return files
}

func wholeFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	data, err := readFile(fs, name)
	if err != nil || len(data) == maxManifestBytes {
		t.Fatalf("%s: %d bytes, %v", name, len(data), err)
	}
	return data
}

// Whatever byte of whatever file has one bit wrong: it is refused or reported, or
// every task is there.
func TestX1AFlippedByteIsNeverATaskLessInSilence(t *testing.T) {
	fs := killedDir(t)
	want, objection := looked(t, fs, OpenReadOnly)
	if objection != "" || want != (1+logged)*6 {
		t.Fatalf("%d tasks, %s", want, objection)
	}
	step := 1
	if testing.Short() {
		step = 29
	}
	for _, file := range filesOf(t, fs) {
		whole, refused := wholeFile(t, fs, file), 0
		for at := 0; at < len(whole); at += step {
			flipped := slices.Clone(whole)
			flipped[at] ^= 1 << (at % 8)
			overwrite(t, fs, file, string(flipped))
			got, objection := looked(t, fs, OpenReadOnly)
			if objection == "" && got != want {
				t.Errorf("byte %d of %s: %d of %d tasks are there, and nothing is said", at, file, got, want)
			}
			if objection != "" {
				refused++
			}
			if at%(5*step) != 0 || strings.HasSuffix(file, ".sst") {
				continue // the server ends the process for a table
			}
			if got, said := looked(t, killed(crashable(t, fs)), Open); said == "" && got != want || said != objection {
				t.Errorf("byte %d of %s: the server finds %d of %d tasks and says %q, to look says %q", at, file, got, want, said, objection)
			}
		}
		overwrite(t, fs, file, string(whole))
		t.Logf("%s: %d of %d flips were found", file, refused, (len(whole)+step-1)/step)
	}
}

// flippedAt is a file system that reads one bit of a log wrong.
type flippedAt struct {
	vfs.FS
	log string
	at  int64
}

func (f flippedAt) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, options...)
	if err != nil || name != f.log {
		return file, err
	}
	return &flippedFile{File: file, left: f.at}, nil
}

// flippedFile is read from its beginning.
type flippedFile struct {
	vfs.File
	left int64
}

func (f *flippedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if f.left >= 0 && f.left < int64(n) {
		p[f.left] ^= 1 << (f.left % 8)
	}
	f.left -= int64(n)
	return n, err
}

// The same of a log of many blocks.
func TestX1AFlippedByteOfALongLogIsNeverATaskLessInSilence(t *testing.T) {
	const many = 36
	fs := killedDirOf(t, many)
	log, noted := newest(t, fs)
	if noted < 3*chunkBlock {
		t.Fatalf("the log has %d bytes", noted)
	}
	if got, said := looked(t, fs, OpenReadOnly); got != (1+many)*6 || said != "" {
		t.Fatalf("%d tasks, %q", got, said)
	}
	step := int64(37)
	if testing.Short() {
		step *= 61
	}
	for at := int64(0); at < noted; at += step {
		flipped := flippedAt{FS: fs, log: log, at: at}
		if got, said := looked(t, flipped, OpenReadOnly); said == "" && got != (1+many)*6 {
			t.Errorf("byte %d of %s: %d tasks, and nothing is said", at, log, got)
		}
	}
}

// crashable is a copy.
func crashable(t *testing.T, fs vfs.FS) *vfs.MemFS {
	t.Helper()
	c := vfs.NewCrashableMem()
	if _, err := vfs.Clone(fs, c, "data", "data", vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
	if err := SyncDir(c, "."); err != nil {
		t.Fatal(err)
	}
	return c
}

// newest is the path of the newest log, and how much of it is noted.
func newest(t *testing.T, fs vfs.FS) (path string, noted int64) {
	t.Helper()
	number := uint64(0)
	for f, length := range parseSynced(wholeFile(t, fs, "data/db/synced")) {
		if !f.manifest && f.number > number {
			path, noted, number = "data/db/"+f.name(), length, f.number
		}
	}
	if noted == 0 {
		t.Fatal("no log is noted")
	}
	return path, noted
}

func TestX1ALogThatIsCutShortIsRefused(t *testing.T) {
	fs := killedDir(t)
	log, noted := newest(t, fs)
	whole, step := wholeFile(t, fs, log), int64(1)
	if testing.Short() {
		step = 37
	}
	for length := range noted {
		if length%step != 0 && length != noted-1 {
			continue
		}
		overwrite(t, fs, log, string(whole[:length]))
		if got, said := looked(t, fs, OpenReadOnly); !strings.Contains(said, "are lost") || !strings.Contains(said, "--accept-loss db/") {
			t.Fatalf("cut at %d of %d: %d tasks are found, and %q is said", length, noted, got, said)
		}
	}
	overwrite(t, fs, log, string(whole[:noted]))
	if got, said := looked(t, fs, OpenReadOnly); got != (1+logged)*6 || said != "" {
		t.Errorf("cut at what was synced: %d tasks, %q", got, said)
	}
}

func TestX1AFileThatIsGoneIsRefused(t *testing.T) {
	whole := killedDir(t)
	log, _ := newest(t, whole)
	removed := 0
	for _, file := range filesOf(t, whole) {
		fs := crashable(t, whole)
		remove(t, fs, file)
		got, said := looked(t, fs, OpenReadOnly)
		needed := file == log || strings.HasSuffix(file, ".sst") || strings.Contains(file, "marker") || strings.Contains(file, "MANIFEST")
		if said == "" && got != (1+logged)*6 || needed && said == "" {
			t.Errorf("without %s: %d tasks, and nothing is said", file, got)
		}
		if file == log && !strings.Contains(said, "missing") {
			t.Errorf("without the newest log %q is said", said)
		}
		if needed {
			removed++
		}
	}
	if removed < 5 {
		t.Errorf("only %d files are needed", removed)
	}
}

// A directory from before there were notes starts as it did, and a part of a log
// that says more was synced is proof enough. Pebble answers a sync before it
// counts it, so the batch that follows at once may not say it yet: of many, one does.
func TestX1WithoutNotesALaterPartOfTheLogIsTheProof(t *testing.T) {
	const many = 12
	fs := killedDirOf(t, many)
	log, _ := newest(t, fs)
	remove(t, fs, "data/db/synced")
	if got, said := looked(t, fs, OpenReadOnly); got != (1+many)*6 || said != "" {
		t.Fatalf("%d tasks, %q", got, said)
	}
	flipped := wholeFile(t, fs, log)
	flipped[syncedHeader] ^= 1
	overwrite(t, fs, log, string(flipped))
	if got, said := looked(t, fs, OpenReadOnly); !strings.Contains(said, "says more was synced") {
		t.Errorf("%d tasks, %q", got, said)
	}
}

// Power cut after power cut, each over what the one before has left: whatever of
// the unsynced data is kept, the directory opens and holds what was durable.
func TestX1APowerCutIsNeverTakenForDamage(t *testing.T) {
	seeds, cuts := uint64(40), 8
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(14, seed))
		fs, durable := vfs.NewCrashableMem(), 0
		for cut := range cuts {
			s, err := Open(optionsIn(steadyMem{fs}))
			if err != nil {
				t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
			}
			if got := len(tasksIn(t, s)); got < durable {
				t.Fatalf("seed %d, cut %d: %d of %d durable tasks", seed, cut, got, durable)
			}
			s.guard.supported = true
			s.logs.bytes = 64 << 10
			p := plantIn(s, 0)
			p.random = random
			for n := range random.IntN(12) {
				p.garden(t, record.QueueKey{Command: fmt.Sprint(seed, "/", cut, "/", n), Tenant: "t"})
				switch random.IntN(4) {
				case 0:
					flush(t, s)
				case 1:
					s.logs.fill()
				case 2:
					barrier(t, s)
				}
			}
			if random.IntN(2) == 0 {
				barrier(t, s)
				durable = len(tasksIn(t, s))
			}
			left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 25 * random.IntN(5), RNG: random})
			closeStore(t, s)
			fs = left
		}
	}
}

func TestX1LossIsAcceptedByNameAndSaid(t *testing.T) {
	whole := killedDir(t)
	log, noted := newest(t, whole)
	for name, c := range map[string]struct {
		damage func(fs vfs.FS)
		file   string
		says   string
		tasks  int
	}{
		"a flip in the last record": {func(fs vfs.FS) {
			data := wholeFile(t, fs, log)
			data[noted-40] ^= 4
			overwrite(t, fs, log, string(data))
		}, log, "is cut at byte", logged * 6},
		"no byte left": {func(fs vfs.FS) { overwrite(t, fs, log, "") }, log, fmt.Sprintf("(%d bytes at least)", noted), 6},
		"gone":         {func(fs vfs.FS) { remove(t, fs, log) }, log, "is missing", 6},
		"in order":     {func(vfs.FS) {}, log, "nothing is given up", (1 + logged) * 6},
	} {
		t.Run(name, func(t *testing.T) {
			fs := crashable(t, whole)
			c.damage(fs)
			if _, said := looked(t, fs, OpenReadOnly); said == "" != (name == "in order") {
				t.Fatalf("it is said %q", said)
			}
			said, err := AcceptLoss(optionsIn(fs), c.file)
			if err != nil || !strings.Contains(said, c.says) || !strings.Contains(said, c.file) {
				t.Errorf("it is said %q, %v", said, err)
			}
			// The doctor and the server agree, also after a power cut.
			fs = fs.CrashClone(vfs.CrashCloneCfg{})
			for _, open := range []func(Options) (*Store, error){OpenReadOnly, Open, OpenReadOnly} {
				if got, said := looked(t, fs, open); got != c.tasks || said != "" {
					t.Errorf("%d tasks, want %d; it is said %q", got, c.tasks, said)
				}
			}
		})
	}
}

func TestX1OnlyALossThatIsThereIsAccepted(t *testing.T) {
	fs := killedDir(t)
	for file, says := range map[string]string{
		"db/000099.log": "no such file", "db/000005.sst": "restore the directory", "codeq.json": "restore the directory",
	} {
		before := listing(t, fs, "data")
		if said, err := AcceptLoss(optionsIn(fs), file); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %q, %v", file, said, err)
		}
		if after := listing(t, fs, "data"); after != before {
			t.Errorf("%s: the directory has changed", file)
		}
	}
}

// unnoted is a file system that has no place for notes.
type unnoted struct{ vfs.FS }

func (u unnoted) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.Contains(name, syncedName) {
		return nil, errors.New("no place")
	}
	return u.FS.Create(name, category)
}

// What cannot be noted is written all the same, and the notes from before stay true.
func TestX1AServerThatCannotNoteGoesOn(t *testing.T) {
	fs := vfs.NewCrashableMem()
	for round, under := range []vfs.FS{fs, unnoted{fs}, unnoted{fs}, fs} {
		s, err := Open(optionsIn(under))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got := len(tasksIn(t, s)); got != 6*round {
			t.Errorf("round %d: %d tasks", round, got)
		}
		p := plantIn(s, 0)
		p.random = rand.New(rand.NewPCG(14, uint64(round)))
		p.garden(t, record.QueueKey{Command: fmt.Sprint("c", round), Tenant: "t"})
		barrier(t, s)
		if round == 2 {
			flush(t, s)
		}
		closeStore(t, s)
	}
}

var errNoSync = errors.New("the disk is gone")

// failingSync is a file whose sync fails.
type failingSync struct{ vfs.File }

func (failingSync) Sync() error     { return errNoSync }
func (failingSync) SyncData() error { return errNoSync }

// What could not be synced is not noted: the next start would refuse a directory
// that has all that was acknowledged.
func TestX1WhatCouldNotBeSyncedIsNotNoted(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data/db", 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := newSynced(fs, "data/db", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	f, err := s.Create("data/db/000002.log", logCategory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	watched := f.(*syncedFile)
	working := watched.File
	watched.File = failingSync{working}
	if err := f.Sync(); !errors.Is(err, errNoSync) {
		t.Errorf("the sync ends with %v", err)
	}
	if err := f.SyncData(); !errors.Is(err, errNoSync) {
		t.Errorf("the sync ends with %v", err)
	}
	if notes := parseSynced(wholeFile(t, fs, "data/db/"+syncedName)); len(notes) != 0 {
		t.Errorf("noted as synced: %v", notes)
	}
	watched.File = working
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if notes := parseSynced(wholeFile(t, fs, "data/db/"+syncedName)); notes[watched.which] != 100 {
		t.Errorf("noted as synced: %v", notes)
	}
}

// firstMade keeps the name of the first log that is made.
type firstMade struct {
	vfs.FS
	name string
}

func (f *firstMade) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if made, ok := parseLogFile(f.FS.PathBase(name)); ok && !made.manifest && f.name == "" {
		f.name = f.FS.PathBase(name)
	}
	return f.FS.Create(name, category)
}

// A power cut takes a log back of which a note says that it was synced, the next
// start gives its number again, and the process ends before it has synced that file:
// the note is about another file, and the start after that goes.
func TestX1ANoteOfALogThatAPowerCutTookBackIsDropped(t *testing.T) {
	fs := killedDir(t)
	probe := &firstMade{FS: killed(crashable(t, fs))}
	first, err := Open(optionsIn(probe))
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, first)
	again, ok := parseLogFile(probe.name)
	if !ok {
		t.Fatalf("%q was made first", probe.name)
	}
	notes := appendNote(wholeFile(t, fs, "data/db/synced"), again, 1<<20)
	overwrite(t, fs, "data/db/synced", string(notes))
	s, err := newSynced(fs, "data/db", zerolog.Nop())
	if err != nil || s.found[again] != 1<<20 {
		t.Fatalf("%d bytes of %s are noted, %v", s.found[again], again.name(), err)
	}
	f, err := s.Create("data/db/"+again.name(), logCategory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s.close()
	if got, said := looked(t, fs, OpenReadOnly); got != (1+logged)*6 || said != "" {
		t.Errorf("%d tasks are found, %q is said", got, said)
	}
	if got, said := looked(t, killed(fs), Open); got != (1+logged)*6 || said != "" {
		t.Errorf("the server finds %d tasks and says %q", got, said)
	}
}
