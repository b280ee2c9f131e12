package cluster

import (
	"cmp"

	"tarry/fsm/store"
)

// budget bounds the memory and the files of one group. With several shards they share the cache of
// blocks and the open tables, and each has a part of what one group alone may have. What is bounded by
// the requests under way (the batches, bodies for waiting reserves) is bounded a group.
type budget struct {
	cacheBytes    int64        // of blocks; 0: the default
	tables        int          // that are open at a time; 0: the default
	shared        *store.Cache // instead of both; nil: the group has its own
	memTableBytes uint64       // of one memtable; 0: the default
	logCacheBytes int64        // entries of the log that are kept for followers
}

const (
	sharedCacheBytes = 64 << 20 // unless Config.CacheBytes has another
	sharedTables     = 1000     // unless Config.OpenFiles has another
	wholeMemTable    = 32 << 20
	leastMemTable    = 4 << 20
	memTables        = 4 // that exist at a time, at most
	leastLogCache    = 4 << 20
)

// budget returns the budget of each group.
func (n *Node) budget(shards int) budget {
	b := budget{cacheBytes: n.cfg.CacheBytes, tables: n.cfg.OpenFiles.Tables, memTableBytes: n.cfg.files.memTableBytes, logCacheBytes: logCacheBytes}
	if shards == 1 {
		return b
	}
	b.memTableBytes = max(cmp.Or(b.memTableBytes, wholeMemTable)/uint64(shards), leastMemTable)
	b.logCacheBytes = max(logCacheBytes/int64(shards), leastLogCache)
	memory := cmp.Or(b.cacheBytes, sharedCacheBytes) + memTables*int64(b.memTableBytes)*int64(shards+1) // Pebble counts memtables in
	n.cache = store.NewCache(memory, cmp.Or(b.tables, sharedTables))
	b.shared = n.cache
	return b
}
