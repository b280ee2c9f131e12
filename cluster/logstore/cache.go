package logstore

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Cache keeps the newest entries of a log in memory. They are read by followers that are
// slightly behind, and when they are applied. Raft's own cache limits only the number of
// entries, not their bytes. All methods may be called from any goroutine.
type Cache struct {
	raft.LogStore
	maxBytes int64
	maxCount int

	mu      sync.RWMutex
	entries []*raft.Log // consecutive, oldest first
	bytes   int64       // of entries
}

var _ raft.MonotonicLogStore = (*Cache)(nil)

// NewCache returns log with a cache of at most so many bytes and entries.
func NewCache(log raft.LogStore, bytes int64, entries int) *Cache {
	return &Cache{LogStore: log, maxBytes: bytes, maxCount: entries}
}

// IsMonotonic implements raft.MonotonicLogStore.
func (c *Cache) IsMonotonic() bool {
	m, ok := c.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// GetLog implements raft.LogStore. The entry's bytes are shared and must not change.
func (c *Cache) GetLog(index uint64, entry *raft.Log) error {
	if e := c.cached(index); e != nil {
		*entry = *e
		return nil
	}
	return c.LogStore.GetLog(index, entry)
}

func (c *Cache) cached(index uint64) *raft.Log {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.entries) == 0 || index < c.entries[0].Index || index-c.entries[0].Index >= uint64(len(c.entries)) {
		return nil
	}
	return c.entries[index-c.entries[0].Index]
}

// StoreLog implements raft.LogStore.
func (c *Cache) StoreLog(entry *raft.Log) error { return c.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (c *Cache) StoreLogs(entries []*raft.Log) error {
	if err := c.LogStore.StoreLogs(entries); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if n := len(c.entries); n > 0 && c.entries[n-1].Index+1 != e.Index {
			c.drop(n) // the log was emptied and continues at another index
		}
		c.entries = append(c.entries, e)
		c.bytes += sizeOf(e)
	}
	over := 0
	for left := c.bytes; over < len(c.entries) && (left > c.maxBytes || len(c.entries)-over > c.maxCount); over++ {
		left -= sizeOf(c.entries[over])
	}
	c.drop(over)
	return nil
}

// drop removes the n oldest entries. It is called with c.mu held.
func (c *Cache) drop(n int) {
	for _, e := range c.entries[:n] {
		c.bytes -= sizeOf(e)
	}
	clear(c.entries[:n])
	c.entries = c.entries[n:]
}

// DeleteRange implements raft.LogStore.
func (c *Cache) DeleteRange(first, last uint64) error {
	c.mu.Lock()
	if len(c.entries) > 0 && last >= c.entries[0].Index {
		c.drop(len(c.entries))
	}
	c.mu.Unlock()
	return c.LogStore.DeleteRange(first, last)
}
