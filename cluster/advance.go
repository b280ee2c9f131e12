package cluster

import (
	"context"
	"math/rand/v2"

	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// NextDue implements timer.Shard.
func (s *Shard) NextDue() int64 { return s.machine.NextDue() }

// Advance implements timer.Shard: it moves a slice of the jobs that are due and, in the
// same entry, reserves jobs for the waiters of their topics.
func (s *Shard) Advance(ctx context.Context) error {
	d := s.dispatcher()
	if d == nil {
		return leaderrpc.ErrNotLeader
	}
	reserves, reserved := d.Claim(s.Now().UnixMilli())
	ops := append([]*jobpb.Op{{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: advanceSlice, Entropy: rand.Uint64()}}}}, reserves...)
	done := make(chan error, 1)
	s.submit(ops, true, func(rs []*jobpb.Result, err error) {
		if reserved != nil {
			reserved(rest(rs), err)
		}
		done <- err
	})
	select {
	case err := <-done:
		if err != nil && job.CodeOf(err) == job.CodeInternal {
			s.log.Error("could not advance", "error", err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func rest(rs []*jobpb.Result) []*jobpb.Result {
	if len(rs) == 0 {
		return nil
	}
	return rs[1:]
}
