package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/meter"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

var (
	// ErrFull is the end of an upload for which there is no space.
	ErrFull = errors.New("there is no space for more files")
	// ErrGone is for a file that is not there.
	ErrGone = errors.New("the file is gone")
)

// Key finds a file: its task, and its name among the files of that, see wire.FileName.
type Key struct {
	Task wire.TaskID
	File string
}

// Driver is where files are. Any goroutine.
type Driver interface {
	// Put makes a file of what r gives until it ends. The file is whole and durable when Put
	// returns; after an error there is none.
	Put(k Key, r io.Reader) error
	// Open opens a file to be read, ErrGone if there is none.
	Open(k Key) (io.ReadSeekCloser, error)
	// Files are the names of the files of a task.
	Files(id wire.TaskID) ([]string, error)
	// Remove deletes a file, if it is there, and Forget all of a task.
	Remove(k Key) error
	Forget(id wire.TaskID) error
	// Tasks calls each with every task that has files, until it returns false.
	Tasks(each func(wire.TaskID) bool) error
}

// Linker is a Driver whose files clients can get without this server.
type Linker interface {
	// Link is an address that gives a file to whoever has it, for a few minutes, as ContentType and
	// with that Content-Disposition.
	Link(k Key, disposition string) (string, error)
}

// ContentType is the type of each file that is got: what a worker says of it no browser sees.
const ContentType = "application/octet-stream"

// Options configure a Keeper. All fields but Links are required.
type Options struct {
	Driver Driver
	// Links are the addresses to which requests for files are sent on; nil is none.
	Links Linker
	// Next gets every event that the keeper gets.
	Next shardactor.Observer
	// Known says what of the files of a task is of use. What it says must be durable.
	Known func(id wire.TaskID) (store.TaskFiles, error)
	// MaxBytes bounds one file.
	MaxBytes int64
	Log      zerolog.Logger
}

// retryAfter is when files are tried again that could not be deleted.
const retryAfter = time.Minute

// Keeper keeps the files of all tasks and deletes those that no result names. Its methods may be
// called from any goroutine, and none but Put, Open and Stop blocks.
type Keeper struct {
	Options
	stop, wake chan struct{}
	running    sync.WaitGroup

	figures                           meter.Set
	stored, storedBytes, refused      *meter.Counter
	deleted, orphans, deletionsFailed *meter.Counter

	mu sync.Mutex
	// due are the tasks whose files must be looked at.
	due []wire.TaskID
}

// New makes a keeper, which deletes nothing before Start.
func New(o Options) *Keeper {
	k := &Keeper{Options: o, stop: make(chan struct{}), wake: make(chan struct{}, 1)}
	uploads := func(outcome string) *meter.Counter {
		return k.figures.Counter("codeq_artifact_uploads_total", "Files that workers sent, by what became of them.", meter.Label{Name: "outcome", Value: outcome})
	}
	deletions := func(cause string) *meter.Counter {
		return k.figures.Counter("codeq_artifact_files_deleted_total",
			"Files that no task needs any more and that were deleted: when the task ended or went, or as orphans of an earlier process at the start.",
			meter.Label{Name: "cause", Value: cause})
	}
	k.stored, k.refused = uploads("stored"), uploads("refused")
	k.storedBytes = k.figures.Counter("codeq_artifact_upload_bytes_total", "Bytes of the files that were stored.")
	k.deleted, k.orphans = deletions("end"), deletions("orphan")
	k.deletionsFailed = k.figures.Counter("codeq_artifact_deletion_failures_total", "How often the files of a task could not be looked at or deleted; it is tried again.")
	return k
}

// Refused counts files that were sent and not taken.
func (k *Keeper) Refused(files int) { k.refused.Add(files) }

// WriteMetrics adds the figures of files to a page.
func (k *Keeper) WriteMetrics(p *meter.Page) {
	p.Add(&k.figures)
	p.One("codeq_artifact_tasks_due", meter.Gauge, "Tasks whose files are to be looked at, because they ended or are gone.", float64(k.Due()))
}

// Start begins to delete, at first what an earlier process has left.
func (k *Keeper) Start() {
	k.running.Go(k.run)
	k.running.Go(func() {
		err := k.Driver.Tasks(func(id wire.TaskID) bool {
			k.look(id, k.orphans)
			return !k.stopped()
		})
		if err != nil {
			k.Log.Error().Err(err).Msg("artifacts: the files of an earlier run cannot be listed; those that nobody needs stay until the next start")
		}
	})
}

// Stop ends what Start began. What is due is found again at the next start.
func (k *Keeper) Stop() {
	close(k.stop)
	k.running.Wait()
}

func (k *Keeper) stopped() bool {
	select {
	case <-k.stop:
		return true
	default:
		return false
	}
}

// Put makes a file of what r gives, and says how large it is and its SHA-256 in hex. It is durable
// when Put returns without an error.
func (k *Keeper) Put(key Key, r io.Reader) (sizeBytes int64, sum string, err error) {
	hash, counted := sha256.New(), &counting{Reader: r}
	if err := k.Driver.Put(key, io.TeeReader(counted, hash)); err != nil {
		return 0, "", err
	}
	k.stored.Inc()
	k.storedBytes.AddInt64(counted.bytes)
	return counted.bytes, hex.EncodeToString(hash.Sum(nil)), nil
}

type counting struct {
	io.Reader
	bytes int64
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += int64(n)
	return n, err
}

// Drop deletes a file that no shard has heard of, or that another one has replaced.
func (k *Keeper) Drop(key Key) {
	if err := k.Driver.Remove(key); err != nil {
		k.Log.Warn().Err(err).Stringer("task", key.Task).Msg("artifacts: a file could not be deleted; it goes when its task ends")
	}
}

// Load implements shardactor.Observer.
func (k *Keeper) Load(shardNo int, number uint64, queues []store.QueueState) {
	k.Next.Load(shardNo, number, queues)
}

// Observe implements shardactor.Observer: a task that ends or is removed may leave files behind.
func (k *Keeper) Observe(shardNo int, events []shard.Event) {
	k.Next.Observe(shardNo, events)
	for i := range events {
		if events[i].Files {
			k.Look(events[i].TaskID)
		}
	}
}

// Look has the files of a task looked at.
func (k *Keeper) Look(id wire.TaskID) {
	k.mu.Lock()
	k.due = append(k.due, id)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default: // it is awake
	}
}

// Due is how many tasks have files that are still to be looked at.
func (k *Keeper) Due() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.due)
}

func (k *Keeper) next() (id wire.TaskID, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.due) == 0 {
		k.due = nil
		return id, false
	}
	id, k.due = k.due[0], k.due[1:]
	return id, true
}

func (k *Keeper) run() {
	for {
		select {
		case <-k.stop:
			return
		case <-k.wake:
		}
		for id, found := k.next(); found && !k.stopped(); id, found = k.next() {
			k.look(id, k.deleted)
		}
	}
}

// look deletes the files of a task that nobody needs, and counts them. What fails is tried again
// later.
func (k *Keeper) look(id wire.TaskID, deleted *meter.Counter) {
	if err := k.tidy(id, deleted); err != nil {
		k.deletionsFailed.Inc()
		k.Log.Error().Err(err).Stringer("task", id).Msg("artifacts: files that nobody needs could not be deleted; it is tried again")
		time.AfterFunc(retryAfter, func() { k.Look(id) })
	}
}

// tidy deletes the files of a task that is gone, those of an ended one that its result does not
// name, and those of deliveries before the newest. It lists the files first: what is uploaded
// after that is of no older state of the task than the one that is read. An upload that is under
// way for a delivery that is over is refused in the end, and deletes its file itself.
func (k *Keeper) tidy(id wire.TaskID, deleted *meter.Counter) error {
	files, err := k.Driver.Files(id)
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	known, err := k.Known(id)
	if err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	needed := 0
	for _, file := range files {
		if known.Needs(file) {
			needed++
		} else if err := k.Driver.Remove(Key{id, file}); err != nil {
			return fmt.Errorf("delete file: %w", err)
		} else {
			deleted.Inc()
		}
	}
	if needed == 0 && (known.Ended || !known.Found) {
		return k.Driver.Forget(id)
	}
	return nil
}

// Open opens a file to be read, ErrGone if there is none.
func (k *Keeper) Open(key Key) (io.ReadSeekCloser, error) { return k.Driver.Open(key) }
