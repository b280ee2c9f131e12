package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options says how a store is opened. FS and OnFatal must be set.
type Options struct {
	FS vfs.FS
	// CacheBytes is the block cache, apart from the memtables; 0: 64 MiB.
	CacheBytes int64
	// MemTableBytes is the size of one memtable, of which up to four exist
	// while flushes are behind; 0: 32 MiB.
	MemTableBytes uint64
	OpenTables    int           // tables that are open at one time; 0: 1000
	Logger        pebble.Logger // nil: silent
	// OnFatal is called after a failure in the background, such as a flush that
	// could not write. What is written from then on may never reach the disk. It
	// may be called from any goroutine, more than once.
	OnFatal func(error)
}

const (
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
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	return o
}

// pebble is how the store is opened. The figures: two cores are shared with
// Raft and the network, so at most two compactions run; writes pile up in L0
// rather than stop while one is behind.
func (o Options) pebble() *pebble.Options {
	p := &pebble.Options{
		FS:                          durableManifests{o.reportFull(o.FS)},
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
	// Most lookups are for keys that are not there. The filter answers them
	// without a read, on every level.
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		// One index block a table: two levels of them cost each lookup twice.
		p.Levels[i].IndexBlockSize = 256 << 10
	}
	p.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) { o.OnFatal(fmt.Errorf("store: %w", err)) },
		// Without this the store reports damage as text, which Damaged cannot
		// recognise.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			o.OnFatal(fmt.Errorf("store: the file %s is damaged: %w", info.Path, info.Details))
		},
		// SingleDelete on a key that was set twice, or not at all, is a defect of
		// the caller that could bring deleted records back.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			o.OnFatal(fmt.Errorf("store: %s", info))
		},
	}
	return p
}

// reportFull calls OnFatal for a full disk before Pebble meets it: Pebble panics
// when it cannot write its write-ahead log, and a stack is no message.
func (o Options) reportFull(fs vfs.FS) vfs.FS {
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
