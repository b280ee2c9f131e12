package cluster

import (
	"cmp"
	"time"

	"tarry/internal/sleep"
)

// flushEvery is how long an applied entry waits at most for the state's memtables to be written to
// the disk. It takes some syncs, and only if something was applied.
const flushEvery = 30 * time.Second

// flushState flushes the state every flushEvery, until the shard stops. The log has all that
// is applied, so nothing would be lost without it. But a node that was killed begins with what
// was flushed: as long as it finds no leader its stale reads are answered from that, and tarry
// recover counts its jobs.
func (s *Shard) flushState() {
	var flushed uint64
	for sleep.For(s.ctx, cmp.Or(s.cfg.files.flushEvery, flushEvery)) {
		applied := s.machine.Applied().Index
		if applied == flushed {
			continue
		}
		if err := s.machine.Flush(); err != nil {
			s.fatal(err)
			return
		}
		flushed = applied
	}
}
