package fsm

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/job"
)

// Options says how a Machine keeps its state. The zero value is usable.
type Options struct {
	FS    vfs.FS // nil: vfs.Default
	Shard uint32 // part of the ids that the server makes
	// CacheBytes is the block cache, apart from the memtables; 0: 64 MiB.
	CacheBytes int64
	// MemTableBytes is the size of one memtable, of which up to four exist
	// while flushes are behind; 0: 32 MiB.
	MemTableBytes uint64
	OpenTables    int           // tables that are open at one time; 0: 1000
	Logger        pebble.Logger // nil: silent
	// OnFatal hears of a failure in the background, such as a flush that could
	// not write. The owner must end the process: what Apply accepts from then
	// on may never reach the disk. It may be called from any goroutine, more
	// than once. nil: such a failure panics.
	OnFatal func(error)
	// Point hears of the steps that make the state durable or replace it:
	// before- and after- flush, checkpoint and swap. It is for tests that end
	// the process there. nil: nobody does.
	Point func(name string)

	maxTopics    int    // 0: job.MaxTopics; tests lower it
	maxTargets   int    // 0: job.MaxPushTargets; tests lower it
	maxRetained  uint64 // 0: job.MaxRetained; tests lower it
	windowCap    int    // 0: defaultWindowCap; tests lower it
	windowBudget int    // 0: defaultWindowBudget; tests lower it
}

const (
	// defaultWindowCap bounds the places of one window, defaultWindowBudget
	// those of all windows together, at 24 bytes each: with many topics each
	// window gets less, down to windowFloor.
	defaultWindowCap    = 2048
	defaultWindowBudget = 2 << 20
	windowFloor         = 16

	defaultCacheBytes    = 64 << 20
	defaultMemTableBytes = 32 << 20
	memTables            = 4
)

// storeFormat is the Pebble format of new stores; older ones are brought up to
// it when they are opened. It is pinned, so that a new Pebble release does not
// end the way back to the last release of Tarry by itself. This one can tell a
// torn end of the write-ahead log from damage in its middle.
const storeFormat = pebble.FormatWALSyncChunks

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.windowCap == 0 {
		o.windowCap = defaultWindowCap
	}
	if o.windowBudget == 0 {
		o.windowBudget = defaultWindowBudget
	}
	if o.Point == nil {
		o.Point = func(string) {}
	}
	if o.OnFatal == nil {
		o.OnFatal = func(err error) { panic(err) }
	}
	return o
}

// pebble is how the store is opened. The figures: two cores are shared with
// Raft and the network, so at most two compactions run; writes pile up in L0
// rather than stop while one is behind.
func (o Options) pebble() *pebble.Options {
	p := &pebble.Options{
		FS:                          manifestFirst{o.tellFull(o.FS)},
		CacheSize:                   o.CacheBytes + memTables*int64(o.MemTableBytes), // Pebble counts memtables in
		FormatMajorVersion:          storeFormat,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		MaxOpenFiles:                o.OpenTables,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		BytesPerSync:                1 << 20,
		WALBytesPerSync:             1 << 20,
		Logger:                      storeLogger{o.Logger, o.OnFatal},
	}
	// Most lookups are for what is not there: the fate of a fresh job, the id
	// of a new one. The filter answers them without a read, on every level.
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		// One index block a table: two levels of them cost each lookup twice.
		p.Levels[i].IndexBlockSize = 256 << 10
	}
	p.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) { o.OnFatal(fmt.Errorf("store: %w", err)) },
		// Without this the store tells of damage as text, which Damaged cannot
		// know again.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			o.OnFatal(fmt.Errorf("store: the file %s is damaged: %w", info.Path, info.Details))
		},
		// SingleDelete on a key that was set twice, or not at all (see doc.go),
		// is a defect here that could bring deleted jobs back.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			o.OnFatal(fmt.Errorf("store: %s", info))
		},
	}
	return p
}

// tellFull tells the owner of a full disk before Pebble meets it: it panics when
// its write-ahead log cannot be written to, and a stack is no message.
func (o Options) tellFull(fs vfs.FS) vfs.FS {
	return vfs.OnDiskFull(fs, func() { o.OnFatal(errors.New("store: write: no space left on device")) })
}

// storeLogger hands the store's messages on, and its fatal ones to the owner.
type storeLogger struct {
	to    pebble.Logger
	fatal func(error)
}

func (l storeLogger) Infof(format string, args ...any) {
	if l.to != nil {
		l.to.Infof(format, args...)
	}
}

func (l storeLogger) Errorf(format string, args ...any) {
	if l.to != nil {
		l.to.Errorf(format, args...)
	}
}

// Fatalf must not return: the store's state in memory is broken.
func (l storeLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("store: "+format, args...)
	l.fatal(err)
	panic(err)
}

// limits are those of a cluster version, but for what tests lower.
func (o Options) limits(version uint32) *job.Limits {
	l := *job.LimitsAt(version)
	l.MaxTopics = cmp.Or(o.maxTopics, l.MaxTopics)
	l.MaxPushTargets = cmp.Or(o.maxTargets, l.MaxPushTargets)
	l.MaxRetained = cmp.Or(o.maxRetained, l.MaxRetained)
	return &l
}
