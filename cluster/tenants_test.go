package cluster

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

func putNamespace(n *jobpb.Namespace) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: &jobpb.PutNamespace{Namespace: n}}}
}

// machineWith returns a state machine that has applied ops, one entry for each.
func machineWith(t *testing.T, ops ...*jobpb.Op) *fsm.Machine {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), OnFatal: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	for i, op := range ops {
		data, err := job.AppendOp(job.AppendEntryHeader(nil, 1000), op)
		require.NoError(t, err)
		rs, _, err := m.Apply([]fsm.Entry{{Index: uint64(i + 1), Term: 1, Data: data}}, true)
		require.NoError(t, err)
		require.Equal(t, jobpb.Code_OK, rs[0][0].Code, rs[0][0].Message)
	}
	return m
}

func rated(name string, milli uint64) *jobpb.Op {
	return putNamespace(&jobpb.Namespace{Name: name, TopicPrefix: name + ".", Quotas: &jobpb.Quotas{RateMilli: &milli}})
}

func TestWhoseAnOperationIs(t *testing.T) {
	named := &jobpb.Finish{Ref: &jobpb.Ref{Id: "b-1"}}
	numbered := &jobpb.Finish{Ref: &jobpb.Ref{Id: "$0-1", Seq: 1}}
	s := &Shard{machine: machineWith(t, putNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "billing.", IdPrefix: "b-"}))}
	for _, c := range []struct {
		op        *jobpb.Op
		principal string
		tenant    string
	}{
		{add("", "billing.a", 0), "", "billing"},
		{add("b-1", "mail", 0), "w", ""}, // its topic decides
		{&jobpb.Op{Kind: &jobpb.Op_Finish{Finish: named}}, "w", "billing"},
		{&jobpb.Op{Kind: &jobpb.Op_Finish{Finish: numbered}}, "w_AAAAAAAA", "w"},
		{&jobpb.Op{Kind: &jobpb.Op_Finish{Finish: numbered}}, "", ""},
		{&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: []string{"billing.a", "x"}}}}, "", "billing"},
		{advanceOp(), "", ""},
		{advanceOp(), job.SystemPrincipal, ""},
	} {
		require.Equal(t, c.tenant, s.tenantOf([]*jobpb.Op{c.op}, c.principal), "%v", c.op)
	}
	open := &Shard{machine: machineWith(t)}
	require.Empty(t, open.tenantOf([]*jobpb.Op{add("", "billing.a", 0)}, "w"), "without namespaces all is one tenant's")
}

func TestARateIsHeldOverTime(t *testing.T) {
	all := machineWith(t, rated("a", 2000), rated("slow", 100)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	one := func(topic string) error { return q.take(all, []*jobpb.Op{add("", topic, 0)}, now) }
	require.NoError(t, one("a.x"))
	require.NoError(t, one("a.y"), "a second of it at once")
	err := one("a.x")
	require.Equal(t, job.CodeOverQuota, job.CodeOf(err))
	require.ErrorContains(t, err, `namespace "a"`)
	require.Equal(t, 500*time.Millisecond, err.(*job.Error).RetryAfter)
	require.NoError(t, one("b.x"), "in no namespace")
	require.NoError(t, one("slow.x"), "a rate below 1 lets one through")
	require.Equal(t, 10*time.Second, one("slow.x").(*job.Error).RetryAfter)
	now = now.Add(500 * time.Millisecond)
	require.NoError(t, one("a.x"))
	require.Error(t, one("a.x"))
	now = now.Add(time.Hour)
	require.NoError(t, one("a.x"))
	require.NoError(t, one("a.x"))
	require.Error(t, one("a.x"), "an hour of silence is no hour of adds")
}

func TestABatchIsWithinTheRateOrRefusedAsAWhole(t *testing.T) {
	all := machineWith(t, rated("a", 2000)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	batch := []*jobpb.Op{add("", "a.x", 0), add("", "a.x", 0), add("", "a.x", 0), add("", "a.x", 0)}
	require.NoError(t, q.take(all, batch, now), "it may take more than there is")
	require.Error(t, q.take(all, batch[:1], now.Add(time.Second)), "and the next one waits for that")
	require.NoError(t, q.take(all, batch[:2], now.Add(2*time.Second)))
	mixed := []*jobpb.Op{add("", "other", 0), add("", "a.x", 0)}
	require.Error(t, q.take(all, mixed, now.Add(2*time.Second)))
	finish := &jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: 1}}, Adds: []*jobpb.Add{{Topic: "a.x"}}}
	require.NoError(t, q.take(all, []*jobpb.Op{{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: finish}}}, now.Add(2*time.Second)), "a finish is not refused")
	require.Error(t, q.take(all, batch[:1], now.Add(2900*time.Millisecond)), "but what follows it counts")
}

// A change of some namespace gives no tokens back.
func TestOtherRatesKeepTheirTokens(t *testing.T) {
	m := machineWith(t, rated("a", 1000))
	var q rateQuotas
	now := time.Unix(1000, 0)
	ops := []*jobpb.Op{add("", "a.x", 0)}
	require.NoError(t, q.take(m.Namespaces(), ops, now))
	changed := machineWith(t, rated("a", 1000), rated("b", 1000)).Namespaces()
	require.Error(t, q.take(changed, ops, now))
	require.NoError(t, q.take(machineWith(t).Namespaces(), ops, now), "without namespaces there is no rate")
}

// Adds that come through all nodes at once fill a namespace up to its quota and no further.
func TestAQuotaIsExactWhicheverNodesAddsGoThrough(t *testing.T) {
	c := newTestCluster(t, 3)
	// An add with an id may be repeated, whatever became of it.
	do := func(n *Node, op *jobpb.Op) jobpb.Code {
		for {
			rs, err := n.shard.Do(t.Context(), []*jobpb.Op{op})
			if err == nil {
				return rs[0].Code
			}
			if code := job.CodeOf(err); code != job.CodeNotApplied && code != job.CodeUnknown {
				assert.NoError(t, err)
				return jobpb.Code_INVALID
			}
		}
	}
	put := putNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "billing.", Quotas: &jobpb.Quotas{Jobs: new(uint64(10))}})
	require.Equal(t, jobpb.Code_OK, do(c.follower(), put))
	var done, refused atomic.Int64
	var calls sync.WaitGroup
	for i := range 30 {
		calls.Go(func() {
			switch do(c.nodes[i%len(c.nodes)], add(strconv.Itoa(i), "billing.x", 0)) {
			case jobpb.Code_OK:
				done.Add(1)
			case jobpb.Code_OVER_QUOTA:
				refused.Add(1)
			}
		})
	}
	calls.Wait()
	require.EqualValues(t, 10, done.Load())
	require.EqualValues(t, 20, refused.Load())
	use, err := c.nodes[c.leader()].shard.Read(t.Context(), &jobpb.Read{What: &jobpb.Read_Namespace{Namespace: "billing"}}, false)
	require.NoError(t, err)
	require.EqualValues(t, 10, use.Namespaces[0].Jobs)
}
