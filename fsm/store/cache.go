package store

import "github.com/cockroachdb/pebble/v2"

// tableShards is in how many parts, each with a lock, the open tables are.
const tableShards = 8

// Cache has the blocks and the open tables of several stores.
type Cache struct {
	blocks *pebble.Cache
	tables *pebble.FileCache
}

// NewCache returns a cache with so many bytes of blocks, the memtables of the stores among them, and
// so many open tables. Close it after the stores.
func NewCache(bytes int64, tables int) *Cache {
	return &Cache{blocks: pebble.NewCache(bytes), tables: pebble.NewFileCache(tableShards, tables)}
}

// Close may be called on nil.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.tables.Unref()
	c.blocks.Unref()
}
