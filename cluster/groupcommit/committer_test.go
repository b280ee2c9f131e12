package groupcommit

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// applied is an entry of which Raft has reported the outcome.
type applied struct {
	raft.ApplyFuture
	err      error
	response any
}

func (a applied) Error() error  { return a.err }
func (a applied) Response() any { return a.response }

func TestOutcomesOfAnEntry(t *testing.T) {
	oneResult := results(7, 1)
	for name, c := range map[string]struct {
		entry  applied
		code   job.Code // of the error; empty: none
		retry  bool
		result []*jobpb.Result
	}{
		"committed and applied":        {entry: applied{response: oneResult}, result: oneResult},
		"not the leader":               {entry: applied{err: raft.ErrNotLeader}, retry: true},
		"leadership is handed over":    {entry: applied{err: raft.ErrLeadershipTransferInProgress}, retry: true},
		"Raft did not take it":         {entry: applied{err: raft.ErrEnqueueTimeout}, retry: true},
		"leadership lost":              {entry: applied{err: raft.ErrLeadershipLost}, code: job.CodeUnknown},
		"Raft stopped":                 {entry: applied{err: raft.ErrRaftShutdown}, code: job.CodeUnknown},
		"applied by another leader":    {entry: applied{}, code: job.CodeUnknown},
		"an error that nobody planned": {entry: applied{err: errors.New("?")}, code: job.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var seen, err error
			var rs []*jobpb.Result
			committer := NewCommitter(CommitterOptions{
				Version: func() uint32 { return job.FirstVersion },
				Apply: func(entry []byte, _ time.Duration) raft.ApplyFuture {
					e, err := oplog.DecodeEntry(entry)
					require.NoError(t, err)
					require.EqualValues(t, 3, e.NowMs)
					return c.entry
				},
				Now:     func() (time.Time, uint64) { return time.UnixMilli(3), 0 },
				Observe: func(_ time.Duration, ofRaft, _ error) { seen = ofRaft },
			})
			committer.Propose(&Batch{}, func(results []*jobpb.Result, outcome error) { rs, err = results, outcome })
			committer.Close()
			committer.Run()
			require.Equal(t, c.entry.err, seen)
			require.Equal(t, c.result, rs)
			switch {
			case c.retry:
				require.Equal(t, leaderrpc.ErrNotLeader, err)
			case c.code == "":
				require.NoError(t, err)
			default:
				require.Equal(t, c.code, job.CodeOf(err))
			}
		})
	}
}
