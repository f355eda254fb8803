package store

import (
	"strconv"
	"time"

	"codeq/internal/meter"
)

// figures are what the store counts while it works. They are made once, so
// that counting needs no name.
type figures struct {
	set         meter.Set
	commits     *meter.Counter
	commitBytes *meter.Histogram
	syncSeconds *meter.Histogram
	syncCommits *meter.Histogram
	scanSteps   *meter.Counter
}

func newFigures() *figures {
	f := &figures{}
	f.commits = f.set.Counter("codeq_commits_total", "Batches that shards have committed.")
	f.commitBytes = f.set.Histogram("codeq_commit_batch_bytes",
		"Size of one committed batch.", meter.Doubling(256, 16))
	f.syncSeconds = f.set.Histogram("codeq_sync_seconds",
		"Time of one sync of the log, which makes the batches of all shards durable.", meter.Doubling(50e-6, 18))
	f.syncCommits = f.set.Histogram("codeq_sync_batches",
		"Batches of all shards that one sync made durable.", meter.Doubling(1, 12))
	f.scanSteps = f.set.Counter("codeq_scan_steps_total",
		"Keys that scans of the database went over, deleted ones that are not compacted away included.")
	return f
}

func (f *figures) committed(bytes int) {
	f.commits.Inc()
	f.commitBytes.Update(float64(bytes))
}

func (f *figures) synced(took time.Duration, commits uint64) {
	f.syncSeconds.Update(took.Seconds())
	f.syncCommits.Update(float64(commits))
}

// Work is what the store has done since its start.
type Work struct {
	Commits, Syncs uint64
	// SyncSeconds is the time of all syncs.
	SyncSeconds float64
}

// Work is what the store has done. Any goroutine.
func (s *Store) Work() Work {
	f := s.figures
	return Work{
		Commits: f.commits.Get(), Syncs: uint64(f.set.Value("codeq_sync_seconds_count")),
		SyncSeconds: f.set.Value("codeq_sync_seconds_sum"),
	}
}

// WriteMetrics adds what the store has counted, the disk guard and the figures
// of the database to a page. It takes locks of the database, so nobody should
// call it much oftener than once a second. Any goroutine, until Close.
func (s *Store) WriteMetrics(p *meter.Page) {
	p.Add(&s.figures.set)
	p.One("codeq_set_aside_total", meter.Total,
		"Unreadable values that were moved out of the way since the start.", float64(s.QuarantinedTotal()))
	if at := s.LastBackup(); !at.IsZero() {
		p.One("codeq_last_backup_timestamp_seconds", meter.Gauge,
			"Moment of the newest backup that was handed out whole, or that the data was restored from, as Unix time.", float64(at.Unix()))
	}
	var fileBytes int64
	for _, sp := range s.spans {
		fileBytes += sp.published.fileBytes()
	}
	p.One("codeq_artifact_bytes", meter.Gauge, "Bytes of the files that tasks have; what is still to be deleted is left out.", float64(fileBytes))
	s.WriteDisk(p)
}

// WriteDisk adds the disk guard and the figures of the database alone, which a node that
// follows has too. As WriteMetrics.
func (s *Store) WriteDisk(p *meter.Page) {
	s.guard.writeMetrics(p)
	s.writeDatabase(p)
}

func (g *Guard) writeMetrics(p *meter.Page) {
	level := g.Level()
	p.One("codeq_disk_guard_level", meter.Gauge,
		"What the free space allows: 0 everything, 1 no new tasks, 2 no grants either, 3 deletions only.", float64(level))
	if !g.supported {
		return
	}
	p.One("codeq_disk_free_bytes", meter.Gauge,
		"Space left on the file system of the data directory, as the disk guard sees it.", float64(g.FreeBytes()))
	p.One("codeq_disk_reserve_bytes", meter.Gauge,
		"Space that the disk guard keeps free: below twice this, new tasks are refused.", float64(g.ReserveBytes()))
}

// writeDatabase says how the database fares: what waits for compaction, what
// memory it has, what it wrote.
func (s *Store) writeDatabase(p *meter.Page) {
	defer s.holdDatabase()()
	m := s.db.Metrics()
	total := m.Total()
	gauge := func(name, help string, value float64) { p.One("codeq_pebble_"+name, meter.Gauge, help, value) }
	count := func(name, help string, value float64) { p.One("codeq_pebble_"+name, meter.Total, help, value) }
	gauge("disk_usage_bytes", "Space that the database takes.", float64(m.DiskSpaceUsage()))
	gauge("compaction_debt_bytes", "Estimate of what has to be compacted until nothing is left to do.", float64(m.Compact.EstimatedDebt))
	gauge("compactions_in_progress", "Compactions that run now.", float64(m.Compact.NumInProgress))
	count("compactions_total", "Compactions since the start.", float64(m.Compact.Count))
	count("tombstone_compactions_total", "Compactions for the sake of deleted keys.", float64(m.Compact.TombstoneDensityCount))
	count("flushes_total", "Memtables written to tables since the start.", float64(m.Flush.Count))
	gauge("l0_sublevels", "Sublevels of level 0: writes wait when there are too many.", float64(m.Levels[0].Sublevels))
	p.Family("codeq_pebble_tables", meter.Gauge, "Tables by level.")
	for level := range m.Levels {
		p.Put(float64(m.Levels[level].TablesCount), meter.Label{Name: "level", Value: strconv.Itoa(level)})
	}
	gauge("memtable_bytes", "Memory of the memtables.", float64(m.MemTable.Size))
	gauge("memtable_zombie_bytes", "Memory of memtables that only a reader still holds.", float64(m.MemTable.ZombieSize))
	gauge("tombstones", "Deleted keys that have not been compacted away, about.", float64(m.Keys.TombstoneCount))
	gauge("snapshots", "Open snapshots.", float64(m.Snapshots.Count))
	gauge("wal_bytes", "Live bytes in the log.", float64(m.WAL.Size))
	gauge("wal_physical_bytes", "Space that the files of the log take.", float64(m.WAL.PhysicalSize))
	count("wal_written_bytes_total", "Bytes written to the log since the start.", float64(m.WAL.BytesWritten))
	gauge("write_amplification", "Bytes written to tables for each byte that came in.", total.WriteAmp())
	gauge("cache_bytes", "Memory of the block cache.", float64(m.BlockCache.Size))
	count("cache_hits_total", "Blocks found in the cache since the start.", float64(m.BlockCache.Hits))
	count("cache_misses_total", "Blocks read from files since the start.", float64(m.BlockCache.Misses))
}
