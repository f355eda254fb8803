package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
)

// Level says what the free space of the disk still allows.
type Level int32

// The levels, each with all restrictions of the one before.
const (
	Ok         Level = iota // everything
	NoEnqueue               // new tasks are refused
	NoGrant                 // and none is handed out
	OnlyDelete              // only what frees space is committed
)

// String is the level in words for logs and health answers.
func (l Level) String() string {
	switch l {
	case Ok:
		return "ok"
	case NoEnqueue:
		return "no-enqueue"
	case NoGrant:
		return "no-grant"
	}
	return "only-delete"
}

// refuses is what a server refuses at the level, for who reads its log.
func (l Level) refuses() string {
	return [...]string{"nothing", "new tasks", "new tasks and deliveries", "new tasks, deliveries, results and changes"}[l]
}

const (
	minReserveBytes   = 256 << 20
	minMemTableBytes  = 1 << 20
	ballastRetryAfter = 10 * time.Second
	fullPause         = 100 * time.Millisecond
)

// Guard watches the free space, because Pebble does not: on a full disk its
// flushes fail in a loop and commits hang without an error. It keeps a
// reserve by levels, and a ballast file that is given up when a write meets a
// full disk all the same, so that what is in flight can still be written.
// When space returns, so do the level and the ballast.
type Guard struct {
	// Static.
	inner         vfs.FS
	fs            vfs.FS // inner, with diskFull behind every write
	dir           string
	ballast       string
	log           zerolog.Logger
	changed       func(Level)
	count         func(ownBytes int64) int64
	supported     bool
	reserveBytes  int64
	ballastBytes  int64
	memTableBytes int

	// Any goroutine. The space left is free at the last question, less what
	// has been committed since.
	free  atomic.Int64
	since atomic.Int64
	// own is what is free here, where free is what Options.CountFree makes of it.
	own  atomic.Int64
	full atomic.Bool

	// mu is held while the ballast is made or given up.
	mu         sync.Mutex
	hasBallast bool
	triedAt    time.Time
	shown      Level
}

// newGuard asks for the free space once and sizes the reserve and, on a small
// disk, the memtables. It writes nothing.
func newGuard(o *Options) (*Guard, error) {
	g := &Guard{
		inner:         o.FS,
		dir:           o.Dir,
		ballast:       o.FS.PathJoin(o.Dir, ballastName),
		log:           o.Log,
		changed:       o.LevelChanged,
		count:         o.CountFree,
		memTableBytes: o.MemTableBytes,
	}
	g.fs = vfs.OnDiskFull(o.FS, g.diskFull)
	usage, err := o.FS.GetDiskUsage(o.Dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return g, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for free space: %w", err)
	}
	g.supported = true
	total := int64(usage.TotalBytes)
	// Four memtables and their logs must fit into half of a quarter of the disk.
	g.memTableBytes = min(g.memTableBytes, max(minMemTableBytes, int(total/32)))
	g.reserveBytes = min(max(minReserveBytes, memTables*int64(g.memTableBytes)), total/4)
	g.ballastBytes = g.reserveBytes / 4
	g.free.Store(int64(usage.AvailBytes))
	g.own.Store(int64(usage.AvailBytes))
	g.hasBallast = g.ballastSize() == g.ballastBytes
	return g, nil // the first Tick tells a level that is not Ok
}

// Level is what may be committed now. Any goroutine, no lock.
func (g *Guard) Level() Level {
	if !g.supported {
		return Ok
	}
	if g.full.Load() {
		return OnlyDelete
	}
	return g.levelWith(g.FreeBytes())
}

func (g *Guard) levelWith(left int64) Level {
	switch {
	case left < g.reserveBytes/2:
		return OnlyDelete
	case left < g.reserveBytes:
		return NoGrant
	case left < 2*g.reserveBytes:
		return NoEnqueue
	}
	return Ok
}

// FreeBytes is the space left as Level sees it, 0 when the file system does
// not tell.
func (g *Guard) FreeBytes() int64 { return g.free.Load() - g.since.Load() }

// OwnFreeBytes is the space left on this disk, at least 1; 0 when the file system does not tell.
func (g *Guard) OwnFreeBytes() int64 {
	if !g.supported {
		return 0
	}
	return max(1, g.own.Load()-g.since.Load())
}

// ReserveBytes is the space that is kept free, 0 when the file system does
// not tell.
func (g *Guard) ReserveBytes() int64 { return g.reserveBytes }

// committed lowers the space left by a batch, so that a burst between two
// questions cannot run past the levels.
func (g *Guard) committed(bytes int) {
	if g.supported {
		g.since.Add(int64(bytes))
	}
}

// Tick asks for the free space and makes the ballast when there is room for
// it. The store's goroutine calls it every second; tests call it by hand.
func (g *Guard) Tick(now time.Time) {
	if !g.supported {
		return
	}
	if level, moved := g.ask(now); moved && g.changed != nil {
		g.changed(level)
	}
}

// ask brings the figures up to date and reports whether the level is another
// than the one that was told last, or that somebody has met since.
func (g *Guard) ask(now time.Time) (level Level, moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Between two questions the level only gets stricter, so this is the strictest
	// that anybody has met since the last one.
	met := g.Level()
	// What is committed while the question is under way counts twice until the
	// next one, never not at all.
	before := g.since.Load()
	usage, err := g.inner.GetDiskUsage(g.dir)
	if err != nil {
		g.log.Error().Err(err).Msg("the free space of the disk is not known; the last known one counts")
		return g.shown, false
	}
	own, counted := int64(usage.AvailBytes), int64(usage.AvailBytes)
	if own >= g.reserveBytes/2 {
		g.full.Store(false)
		if g.count != nil {
			counted = g.count(own)
		}
	}
	g.own.Store(own)
	g.free.Store(counted)
	g.since.Add(-before)
	g.keepBallast(now)
	level = g.Level()
	if level == g.shown {
		return level, level != met
	}
	g.log.Warn().Stringer("was", g.shown).Stringer("is", level).Str("refused", level.refuses()).
		Int64("freeBytes", g.FreeBytes()).Int64("reserveBytes", g.reserveBytes).Msg("the disk guard has another level")
	g.shown = level
	return level, true
}

// keepBallast makes the ballast if it is gone, grants are served, and the
// file itself does not change that. A failure is tried again later: this path
// must not itself depend on space.
func (g *Guard) keepBallast(now time.Time) {
	level := g.Level()
	room := level <= NoEnqueue && g.levelWith(g.FreeBytes()-g.ballastBytes) == level
	if g.hasBallast || !room || now.Sub(g.triedAt) < ballastRetryAfter {
		return
	}
	g.triedAt = now
	if err := g.makeBallast(); err != nil {
		g.log.Error().Err(err).Msg("the ballast file could not be made; it is tried again")
		g.dropBallast()
		return
	}
	g.hasBallast = true
	g.free.Add(-g.ballastBytes)
}

func (g *Guard) makeBallast() error {
	f, err := g.inner.Create(g.ballast, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, g.ballastBytes)
	if errors.Is(err, errors.ErrUnsupported) {
		err = writeZeros(f, g.ballastBytes)
	}
	if err == nil {
		// The last byte gives the file its size, by which a restart knows it.
		_, err = f.WriteAt([]byte{0}, g.ballastBytes-1)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeZeros takes space on a file system that cannot reserve it.
func writeZeros(f vfs.File, bytes int64) error {
	chunk := make([]byte, 1<<20)
	for bytes > 0 {
		n, err := f.Write(chunk[:min(bytes, int64(len(chunk)))])
		if err != nil {
			return err
		}
		bytes -= int64(n)
	}
	return nil
}

func (g *Guard) dropBallast() {
	if err := g.inner.Remove(g.ballast); err != nil {
		g.log.Error().Err(err).Msg("the ballast file could not be removed")
		return
	}
	g.hasBallast = false
}

func (g *Guard) ballastSize() int64 {
	info, err := g.inner.Stat(g.ballast)
	if err != nil {
		return -1 // not there, or as good as that: it is made again
	}
	return info.Size()
}

// diskFull is called while a write that met a full disk waits to be repeated
// once. Without a ballast to give up, it holds the writers back a little:
// Pebble repeats a failed flush without any pause.
func (g *Guard) diskFull() {
	g.full.Store(true)
	g.mu.Lock()
	had := g.hasBallast
	if had {
		g.dropBallast()
	}
	g.mu.Unlock()
	if had {
		g.log.Warn().Msg("the disk is full, the ballast file is given up")
		return
	}
	time.Sleep(fullPause)
}

// loop ticks every second until stop.
func (g *Guard) loop(stop <-chan struct{}) {
	if !g.supported {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	g.Tick(time.Now())
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			g.Tick(now)
		}
	}
}
