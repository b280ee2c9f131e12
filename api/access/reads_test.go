package access

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// ahead is a leader whose tokens are newer than this node's.
type ahead struct {
	leaky
	revision uint64
	arrive   func() // what the log brings to this node after the read
}

func (a ahead) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	result, err := a.leaky.Read(ctx, r, stale)
	result.AuthRevision = a.revision
	if !stale {
		go a.arrive()
	}
	return result, err
}

// A follower learns of a revocation a moment after it was acknowledged. What the leader reads for
// it meanwhile is decided by the tokens that the leader has.
func TestAReadIsDecidedByTheTokensOfTheLeader(t *testing.T) {
	known := withToken(t, enforced(), "reader", "sms", "read")
	open := auth.NewState(0, false, nil, nil)
	for name, c := range map[string]struct {
		here, there *auth.State
		code        job.Code // "": the job does not exist for the caller
	}{
		"revoked":            {known, known.WithoutToken(known.Revision+1, "reader"), CodeUnauthorized},
		"may read less":      {known, withToken(t, known, "reader", "mail", "read"), ""},
		"enforced meanwhile": {open, enforced(), CodeUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			source := newChanging(c.here)
			control := Open(Options{Source: source})
			defer control.Close()
			ctx := NewContext(t.Context(), &Request{Principal: auth.TokenPrincipal("reader"), Secret: secretFor(t, "reader")})
			read := func(stale bool) (*jobpb.ReadResult, error) {
				q := control.Queue(ahead{revision: c.there.Revision, arrive: func() { source.set(c.there) }})
				return q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Job{Job: "j"}}, stale)
			}
			a, err := read(true)
			require.NoError(t, err)
			require.NotNil(t, a.Job, "a stale read is decided by what the node has")

			a, err = read(false)
			if c.code != "" {
				require.Equal(t, c.code, job.CodeOf(err))
				return
			}
			require.NoError(t, err)
			require.Nil(t, a.Job)
		})
	}
}

func TestAReadDoesNotWaitForTokensForever(t *testing.T) {
	control := Open(Options{Source: newChanging(enforced())})
	defer control.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := control.Queue(ahead{revision: 99, arrive: func() {}}).Read(ctx, &jobpb.Read{What: &jobpb.Read_Job{Job: "j"}}, false)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
}
