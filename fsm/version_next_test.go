//go:build chaos && next

package fsm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func opStamp(ref *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Stamp{Stamp: &jobpb.Finish{Ref: ref}}}
}

func opUpdateStamps(ref *jobpb.Ref, stamps uint32) *jobpb.Op {
	u := &jobpb.Update{Ref: ref}
	u.SetStamps(stamps)
	return &jobpb.Op{Kind: &jobpb.Op_Update{Update: u}}
}

// formats returns the number of statuses by format.
func formats(t *testing.T, r *rig) map[byte]int {
	found := map[byte]int{}
	require.NoError(t, record.Scan(r.m.store.db, []byte{record.SpaceStatus}, []byte{record.SpaceStatus + 1}, func(_, value []byte) error {
		found[value[0]]++
		return nil
	}))
	return found
}

// Records of the previous version are readable and are rewritten a few with each step,
// while jobs are processed, across restarts, and in a state that was streamed.
func TestMigrationRewritesRecordsInSteps(t *testing.T) {
	r, twin := newRig(t, Options{}), newRig(t, Options{})
	both := func(ops ...*jobpb.Op) {
		r.do(ops...)
		twin.do(ops...)
	}
	const jobs = 50
	for range jobs {
		both(opAdd(&jobpb.Add{Topic: "t"}))
	}
	both(opReserve(jobs, "t"))
	for seq := uint64(1); seq <= 20; seq++ {
		both(opBury(&jobpb.Bury{Ref: bySeq(seq), Reason: "broken"}))
	}
	require.Equal(t, map[byte]int{record.StatusVersion: jobs}, formats(t, r), "nothing changes before the raise")

	both(opRaise(job.NextVersion-1), opRaise(job.NextVersion))
	require.EqualValues(t, job.NextVersion, r.m.Version())
	require.True(t, r.m.Migrating())
	require.Equal(t, jobs, formats(t, r)[record.StatusVersion], "the raise itself rewrites nothing")
	steps := 0
	for ; r.m.Migrating(); steps++ {
		before := formats(t, r)[record.StatusVersion]
		// The step must see what the same entry changed before it.
		seq := uint64(21 + steps)
		both(opFinish(bySeq(seq)), opStamp(bySeq(seq+10)), opMigrate(7))
		require.LessOrEqual(t, before-formats(t, r)[record.StatusVersion], 7+2)
		r.check()
		switch steps {
		case 1:
			r.reopen()
		case 3:
			fresh := newRig(t, Options{})
			install(t, r, fresh)
			require.True(t, fresh.m.Migrating())
			require.Equal(t, r.digest(), fresh.digest())
		}
		require.Equal(t, twin.digest(), r.digest())
	}
	require.Greater(t, steps, 4)
	require.Zero(t, formats(t, r)[record.StatusVersion])
	require.Equal(t, "broken", r.job(1).Reason)
	digest := r.digest()
	r.one(opMigrate(1))
	require.Equal(t, digest, r.digest(), "a further step changes nothing")
}

func TestTheNextReleaseHasAnOperationAndAFieldMore(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opRaise(job.NextVersion-1), opRaise(job.NextVersion), opAdd(&jobpb.Add{Topic: "t", DelayMs: 5000}))
	require.EqualValues(t, 1, r.one(opStamp(bySeq(1))).Count)
	require.Equal(t, jobpb.Code_OK, r.one(opUpdateStamps(bySeq(1), 40)).Code)
	r.reopen()
	require.EqualValues(t, 42, r.one(opStamp(bySeq(1))).Count)
}

func TestNewOperationsNeedTheRaise(t *testing.T) {
	for name, op := range map[string]*jobpb.Op{"operation": opStamp(bySeq(1)), "field": opUpdateStamps(bySeq(1), 1)} {
		t.Run(name, func(t *testing.T) {
			run, err := oplog.AppendOp(nil, op)
			require.NoError(t, err)
			for version, ok := range map[uint32]bool{job.NextVersion - 1: false, job.NextVersion: true} {
				_, err := oplog.CheckVersion(run, version)
				n, peer := oplog.CheckOps(run, version)
				if ok {
					require.NoError(t, err)
					require.NoError(t, peer)
					require.Equal(t, 1, n)
					continue
				}
				require.ErrorContains(t, err, fmt.Sprintf("needs cluster version %d, and the cluster has version %d", job.NextVersion, version))
				require.ErrorContains(t, peer, fmt.Sprintf("needs cluster version %d", job.NextVersion))
			}
		})
	}
}

func TestLimitsAreThoseOfTheVersion(t *testing.T) {
	r := newRig(t, Options{})
	bury := func() jobpb.Code {
		seq := r.one(opAdd(&jobpb.Add{Topic: "t"})).Seq
		r.one(opReserve(1, "t"))
		defer r.one(opFinish(bySeq(seq)))
		return r.one(opBury(&jobpb.Bury{Ref: bySeq(seq), Reason: strings.Repeat("r", job.MaxReasonBytes+1)})).Code
	}
	require.Equal(t, jobpb.Code_INVALID, bury())
	r.do(opRaise(job.NextVersion-1), opRaise(job.NextVersion))
	require.Equal(t, jobpb.Code_OK, bury())
	r.reopen()
	require.Equal(t, jobpb.Code_OK, bury())
}

func BenchmarkMigrate(b *testing.B) {
	const jobs = 10_000
	for b.Loop() {
		b.StopTimer()
		r := newRig(b, Options{})
		for i := range jobs / 100 {
			var ops []*jobpb.Op
			for k := range 100 {
				ops = append(ops, opAdd(&jobpb.Add{Id: fmt.Sprint(i, "-", k), Topic: "t"}))
			}
			r.do(append(ops, opReserve(100, "t"))...)
		}
		r.do(opRaise(job.NextVersion-1), opRaise(job.NextVersion))
		b.StartTimer()
		for r.m.Migrating() {
			r.one(opMigrate(500))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/record")
}

// An operation of the next release has rights, too.
func TestStampsNeedARight(t *testing.T) {
	r := newAuthRig(t, authEnforce)
	r.do(opRaise(job.NextVersion-1), opRaise(job.NextVersion), opPutToken("w", "a.*=manage"), opPutToken("v", "a.*=consume,read"))
	for r.m.Migrating() {
		r.do(opMigrate(10))
	}
	stamp := func(principal string) *jobpb.Op {
		op := opStamp(bySeq(3))
		op.Principal = principal
		return op
	}
	res := r.do(stamp("w"), stamp("v"), stamp(""))
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_FORBIDDEN, jobpb.Code_NOT_FOUND}, codesOf(res))
}
