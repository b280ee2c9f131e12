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

	maxTopics    int    // 0: job.MaxTopics; tests lower it
	maxTargets   int    // 0: job.MaxPushTargets; tests lower it
	maxRetained  uint64 // 0: job.MaxRetained; tests lower it
	maxRemoved   int    // 0: job.MaxRemovedNodes; tests lower it
	maxTokens    int    // 0: job.MaxTokens; tests lower it
	maxInvited   int    // 0: job.MaxInvitations; tests lower it
	dueRecent    int    // 0: dueRecent; tests lower it
	dueGathered  uint32 // 0: dueGathered; tests lower it
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
)

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	o.dueRecent, o.dueGathered = cmp.Or(o.dueRecent, record.DueRecent), cmp.Or(o.dueGathered, dueGathered)
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

// store returns the options of the store below.
func (o Options) store() store.Options {
	return store.Options{
		FS: o.FS, CacheBytes: o.CacheBytes, MemTableBytes: o.MemTableBytes, OpenTables: o.OpenTables,
		Logger: o.Logger, OnFatal: o.OnFatal, Merger: record.DueCountsMerger,
		Boundaries: record.TableBoundaries,
	}
}

func (o Options) infof(format string, args ...any) {
	if o.Logger != nil {
		o.Logger.Infof(format, args...)
	}
}

// limits returns the limits of a cluster version, except those that tests lower.
func (o Options) limits(version uint32) *job.Limits {
	l := *job.LimitsAt(version)
	l.MaxTopics = cmp.Or(o.maxTopics, l.MaxTopics)
	l.MaxPushTargets = cmp.Or(o.maxTargets, l.MaxPushTargets)
	l.MaxRetained = cmp.Or(o.maxRetained, l.MaxRetained)
	l.MaxRemovedNodes = cmp.Or(o.maxRemoved, l.MaxRemovedNodes)
	l.MaxTokens = cmp.Or(o.maxTokens, l.MaxTokens)
	l.MaxInvitations = cmp.Or(o.maxInvited, l.MaxInvitations)
	return &l
}
