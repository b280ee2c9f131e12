package cluster

import (
	"context"
	"time"

	"tarry/internal/sleep"
	"tarry/job/jobpb"
)

const (
	// migrateSlice bounds the records that one entry rewrites: some megabytes.
	migrateSlice = 500
	// migratePause is the time between two steps, so that they take only a part of the
	// leader's time.
	migratePause = 20 * time.Millisecond
)

// migrate rewrites the records in the format of the cluster version each time that version
// is raised, until ctx ends. It continues what an earlier leader began.
func (s *Shard) migrate(ctx context.Context) {
	for ctx.Err() == nil {
		if !s.machine.Migrating() {
			select {
			case <-s.toMigrate:
			case <-ctx.Done():
			}
			continue
		}
		done := make(chan error, 1)
		op := &jobpb.Op{Kind: &jobpb.Op_Migrate{Migrate: &jobpb.Migrate{Max: migrateSlice}}}
		s.submit([]*jobpb.Op{op}, "", true, func(_ []*jobpb.Result, err error) { done <- err })
		select {
		case err := <-done:
			if err != nil {
				s.log.Debug("a step of the migration failed; trying again", "error", err)
			}
		case <-ctx.Done():
			return
		}
		if !s.machine.Migrating() {
			s.log.Info("all records have the format of the cluster version", "version", s.machine.Version())
		}
		sleep.For(ctx, migratePause)
	}
}

// poke leaves a wake-up in c, which holds at most one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
