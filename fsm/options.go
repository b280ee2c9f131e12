package fsm

import (
	"cmp"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/job"
)

// Options configures a Machine. The zero value is usable.
type Options struct {
	FS    vfs.FS // nil: vfs.Default
	Shard uint32 // part of the ids that the server makes
	// Cache is shared with other machines; nil: the machine has one of its own, of CacheBytes and
	// OpenTables.
	Cache *store.Cache
	// CacheBytes is the block cache, apart from the memtables; 0: 64 MiB.
	CacheBytes int64
	// MemTableBytes is the size of one memtable, of which up to four exist
	// while flushes are behind; 0: 32 MiB.
	MemTableBytes uint64
	OpenTables    int           // tables that are open at one time; 0: 1000
	Logger        pebble.Logger // nil: silent
	// OnFatal is called after a failure in the background, such as a flush that
	// could not write. The owner must end the process: what Apply accepts from then
	// on may never reach the disk. It may be called from any goroutine, more than
	// once. nil: such a failure panics.
	OnFatal func(error)
	// Point is called at the steps that make the state durable or replace it: before- and
	// after- flush, checkpoint and swap. Tests end the process there. May be nil.
	Point func(name string)

	// Tests lower some of these; what is 0 is as in a cluster.
	limits job.Limits // of the cluster version
	bounds bounds
}

// bounds are those of what is kept before it is moved on, and in memory.
type bounds struct {
	dueRecent   int    // changes of due counts in the state record
	dueGathered uint32 // changes of due counts that are gathered
	// windowCap bounds the places of one window, windowBudget those of all windows
	// together, at 24 bytes each: with many topics each window gets less, down to
	// windowFloor.
	windowCap, windowBudget int
}

var defaultBounds = bounds{dueRecent: record.DueRecent, dueGathered: dueGathered, windowCap: 2048, windowBudget: 2 << 20}

const windowFloor = 16

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	b := &o.bounds
	b.dueRecent, b.dueGathered = cmp.Or(b.dueRecent, defaultBounds.dueRecent), cmp.Or(b.dueGathered, defaultBounds.dueGathered)
	b.windowCap, b.windowBudget = cmp.Or(b.windowCap, defaultBounds.windowCap), cmp.Or(b.windowBudget, defaultBounds.windowBudget)
	if o.Point == nil {
		o.Point = func(string) {}
	}
	if o.OnFatal == nil {
		o.OnFatal = func(err error) { panic(err) }
	}
	return o
}

// store returns the options of the store below.
func (o Options) store() store.Options {
	return store.Options{
		FS: o.FS, Cache: o.Cache, CacheBytes: o.CacheBytes, MemTableBytes: o.MemTableBytes, OpenTables: o.OpenTables,
		Logger: o.Logger, OnFatal: o.OnFatal, Merger: record.DueCountsMerger,
		Boundaries: record.TableBoundaries,
	}
}

func (o Options) infof(format string, args ...any) {
	if o.Logger != nil {
		o.Logger.Infof(format, args...)
	}
}

// limitsAt returns the limits of a cluster version, except those that tests lower.
func (o Options) limitsAt(version uint32) *job.Limits {
	l, lower := *job.LimitsAt(version), &o.limits
	l.MaxTopics = cmp.Or(lower.MaxTopics, l.MaxTopics)
	l.MaxPushTargets = cmp.Or(lower.MaxPushTargets, l.MaxPushTargets)
	l.MaxRetained = cmp.Or(lower.MaxRetained, l.MaxRetained)
	l.MaxRemovedNodes = cmp.Or(lower.MaxRemovedNodes, l.MaxRemovedNodes)
	l.MaxTokens = cmp.Or(lower.MaxTokens, l.MaxTokens)
	l.MaxInvitations = cmp.Or(lower.MaxInvitations, l.MaxInvitations)
	return &l
}
