package store

import (
	"runtime"

	"github.com/cockroachdb/pebble/v2"
)

// Cache has the blocks and the open tables of several stores.
type Cache struct {
	blocks *pebble.Cache
	tables *pebble.FileCache
}

// NewCache returns a cache with so many bytes of blocks, the memtables of the stores among them, and
// so many open tables. Close it after the stores.
func NewCache(bytes int64, tables int) *Cache {
	return &Cache{blocks: pebble.NewCache(bytes), tables: pebble.NewFileCache(runtime.GOMAXPROCS(0), tables)}
}

// Close may be called on nil.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.tables.Unref()
	c.blocks.Unref()
}
