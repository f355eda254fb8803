package store

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/rs/zerolog"
)

// memTables is how many memtables may wait to be flushed before writes stop.
const memTables = 4

// pebbleOtherFiles is what Pebble takes off its bound of open files before it
// bounds the tables.
const pebbleOtherFiles = 10

// pebbleOptions are the same for every open. The format version is pinned:
// Pebble's default is an old one, and a newer one cannot be taken back.
func (s *Store) pebbleOptions() *pebble.Options {
	log := &pebbleLog{log: s.options.Log, die: s.die}
	o := &pebble.Options{
		FS:                          s.logs,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		Cache:                       s.cache,
		MemTableSize:                uint64(s.guard.memTableBytes),
		MemTableStopWritesThreshold: memTables,
		// A compaction of L0 rewrites much of the level below whatever it adds, so it is
		// cheaper in larger pieces; a read looks into as many more filters. With 8
		// sublevels codeq bench --pipeline made 63,000 to 67,000 cycles/s, with 16 76,000,
		// with 24 or 32 5 % more than with 16.
		L0CompactionThreshold:       16,
		L0StopWritesThreshold:       48,
		CompactionConcurrencyRange:  compactionConcurrency,
		FlushDelayDeleteRange:       10 * time.Second,
		BytesPerSync:                1 << 20,
		MaxOpenFiles:                s.options.MaxOpenTables + pebbleOtherFiles,
		Logger:                      log,
		EventListener:               s.listener(),
		DisableAutomaticCompactions: s.options.DisableAutomaticCompactions,
		DisableWAL:                  s.unlogged(),
	}
	if s.readOnly {
		o.EventListener = patient()
	}
	if o.DisableAutomaticCompactions {
		o.Experimental.ReadSamplingMultiplier = -1
	}
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	// Values are small and neighbours are read together, by compactions and by grants. A
	// cycle cost 32 µs of CPU with blocks of 4 KiB and 30 with 32 KiB; 16 leaves less to
	// unpack for a single read.
	o.Levels[0].BlockSize = 16 << 10
	return o
}

func compactionConcurrency() (lower, upper int) { return 1, max(1, runtime.NumCPU()/2) }

// listener turns Pebble's events into log lines. Its functions are called
// with locks of Pebble held: they must not block.
func (s *Store) listener() *pebble.EventListener {
	log := s.options.Log
	atMost := log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second})
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			// A full disk fails a flush thousands of times a second.
			atMost.Error().Err(err).Msg("flush or compaction failed, it will be repeated")
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.die(refuse(info.Path, "the file is damaged (%v); %s; codeq doctor says what is lost", info.Details, s.remedy()))
		},
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			// A key was set twice and deleted as if once: what it hid may come back. The
			// next batch ends the process, in a goroutine that may.
			if info.Kind == pebble.NondeterministicSingleDelete {
				err := fmt.Errorf("%s was set more than once before it was deleted", s.nameForLog(info.UserKey))
				s.pipe.misused.Store(&err)
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			log.Warn().Str("reason", info.Reason).Msg("writes wait for flushes or compactions")
		},
		WriteStallEnd: func() { log.Warn().Msg("writes go on") },
	}
}

// patient ends the process for no damaged file, as Pebble does without a listener:
// whoever reads one is answered with the error.
func patient() *pebble.EventListener {
	return &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
}

// pebbleLog hands Pebble's own words on. Fatalf is how Pebble reports that a
// commit or sync failed; it must not return, and does not.
type pebbleLog struct {
	log zerolog.Logger
	die func(error)
}

// Infof implements pebble.Logger.
func (l *pebbleLog) Infof(format string, args ...any) { l.log.Debug().Msgf(format, args...) }

// Errorf implements pebble.Logger.
func (l *pebbleLog) Errorf(format string, args ...any) { l.log.Error().Msgf(format, args...) }

// Fatalf implements pebble.Logger.
func (l *pebbleLog) Fatalf(format string, args ...any) { l.die(fmt.Errorf(format, args...)) }

// Flush writes what has been applied from memory into tables and returns when
// that is durable. Synced is told nothing by it. Pebble does the same by itself
// when its memory is full; a simulator wants to say when. Any goroutine.
func (s *Store) Flush() error {
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// Compact merges all tables, which Pebble does by itself unless automatic
// compactions are off. Any goroutine.
func (s *Store) Compact(ctx context.Context) error {
	lower := []byte{0}
	if err := s.db.Compact(ctx, lower, []byte{0xff}, false); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}
