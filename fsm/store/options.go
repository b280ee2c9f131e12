package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configures a store. FS and OnFatal must be set.
type Options struct {
	FS vfs.FS
	// Cache is shared with other stores; nil: the store has one of its own, of CacheBytes and
	// OpenTables.
	Cache *Cache
	// CacheBytes is the block cache, apart from the memtables; 0: 64 MiB.
	CacheBytes int64
	// MemTableBytes is the size of one memtable, of which up to four exist
	// while flushes are behind; 0: 32 MiB.
	MemTableBytes uint64
	OpenTables    int           // tables that are open at one time; 0: 1000
	Logger        pebble.Logger // nil: silent
	// Merger adds up the values that were written by Merge; nil: Pebble's own. A store is
	// opened only with the merger of the same name as it was made with.
	Merger *pebble.Merger
	// Boundaries are keys, in order, at which tables end: no table has records from both sides
	// of one.
	Boundaries [][]byte
	// OnFatal is called after a failure in the background, such as a failed flush.
	// Later writes may never reach the disk. It may be called from any goroutine, more
	// than once.
	OnFatal func(error)
}

const (
	defaultCacheBytes    = 64 << 20
	defaultMemTableBytes = 32 << 20
	memTables            = 4
	bitsPerKey           = 10 // of the Bloom filters
)

// storeFormat is the Pebble format of new stores; Open upgrades older ones. It is pinned,
// so that a new Pebble release alone does not prevent a downgrade to the last release of
// Tarry. From this format on, a torn end of the write-ahead log, which earlier releases wrote, can
// be distinguished from damage in its middle.
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

// pebble returns Pebble's options. Two cores are shared with Raft and the network, so at
// most two compactions run; if they are behind, writes fill L0 and do not stop. The limits of
// the levels are measured with BenchmarkStoreWrites of package fsm (docs/benchmarks-choices.md):
// a large base level saves a level below it, and more tables on top of each other in L0 would
// cost lookups of ids more than they save.
//
// What arrives in the order of its keys, such as bodies, is written once. Its tables overlap with
// no others, so Pebble moves them to lower levels and does not rewrite them. That takes two
// settings. Tables end at the boundaries: one that reached from the last body to a record that
// changes all the time would overlap with all later bodies. And tables of the base level are
// small: a compaction of L0 takes in all tables beside it, up to 25 times that size together, and
// leaves them alone if they are more.
func (o Options) pebble() *pebble.Options {
	p := &pebble.Options{
		FS:                          checkedFooters{durableManifests{o.reportFull(o.FS)}},
		DisableWAL:                  true,                                            // the Raft log is the write-ahead log
		CacheSize:                   o.CacheBytes + memTables*int64(o.MemTableBytes), // Pebble counts memtables in
		FormatMajorVersion:          storeFormat,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		MaxOpenFiles:                o.OpenTables,
		L0CompactionThreshold:       6,
		L0StopWritesThreshold:       24,
		L0CompactionFileThreshold:   256,
		LBaseMaxBytes:               512 << 20,
		TargetFileSizes:             [...]int64{4 << 20, 256 << 10, 8 << 20, 16 << 20, 32 << 20, 32 << 20, 32 << 20},
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		BytesPerSync:                1 << 20,
		Logger:                      storeLogger{o.Logger, o.OnFatal},
		Merger:                      o.Merger,
	}
	if o.Cache != nil {
		p.Cache, p.FileCache = o.Cache.blocks, o.Cache.tables
	}
	// Most lookups are for absent keys. With the filter they need no read.
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(bitsPerKey)
		// One index block per table: a second level would double the cost of a lookup.
		p.Levels[i].IndexBlockSize = 256 << 10
	}
	p.Experimental.SpanPolicyFunc = o.span
	p.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) { o.OnFatal(fmt.Errorf("store: %w", err)) },
		// By default Pebble reports damage as text, which Damaged cannot recognise.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			o.OnFatal(fmt.Errorf("store: the file %s is damaged: %w", info.Path, info.Details))
		},
		// SingleDelete on a key that was set twice, or not at all, is a defect that
		// could bring deleted records back.
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			o.OnFatal(fmt.Errorf("store: %s", info))
		},
	}
	return p
}

// span is a pebble.SpanPolicyFunc, by which a table ends at the next boundary after its first key.
func (o Options) span(first []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	for _, b := range o.Boundaries {
		if bytes.Compare(first, b) < 0 {
			return policy, b, nil
		}
	}
	return policy, nil, nil
}

// reportFull calls OnFatal for a full disk, with a clear message.
func (o Options) reportFull(fs vfs.FS) vfs.FS {
	return vfs.OnDiskFull(fs, func() { o.OnFatal(errors.New("store: write: no space left on device")) })
}

// storeLogger forwards the store's messages, and the fatal ones to OnFatal.
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

// Fatalf must not return, because the store's state in memory is broken.
func (l storeLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("store: "+format, args...)
	l.fatal(err)
	panic(err)
}
