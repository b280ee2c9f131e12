package cluster

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
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
		data, err := oplog.AppendOp(oplog.AppendEntryHeader(nil, 1000), op)
		require.NoError(t, err)
		rs, _, err := m.Apply([]fsm.Entry{{Index: uint64(i + 1), Term: 1, Data: data}}, true)
		require.NoError(t, err)
		require.Equal(t, jobpb.Code_OK, rs[0][0].Code, rs[0][0].Message)
	}
	return m
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
		{&jobpb.Op{Kind: &jobpb.Op_Finish{Finish: numbered}}, "w_AAAAAAAA", ":w"},
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

// Nobody takes turns of a tenant on whose topics they have no rights, by its topics or ids.
func TestNobodyActsAsAnotherTenant(t *testing.T) {
	root := putToken(t, "root", []string{"*"}, auth.VerbNames())
	root.GetPutToken().Bootstrap = true
	admin := func(op *jobpb.Op) *jobpb.Op { op.Principal = "root"; return op }
	s := &Shard{machine: machineWith(t, root,
		admin(putNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "billing.", IdPrefix: "b-"})),
		admin(putToken(t, "mail", []string{"mail.*"}, []string{"add", "consume"})),
		admin(putToken(t, "invoices", []string{"billing.*"}, []string{"consume"})),
		admin(putToken(t, "auditor", []string{"*"}, []string{"read", "observe"})),
		admin(putToken(t, "billing", []string{"sms"}, []string{"add"})),
		admin(setAuthMode(jobpb.AuthMode_AUTH_ENFORCE)))}
	theirs := &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "b-1"}}}}
	of := &jobpb.Op{Kind: theirs.Kind, Principal: "mail"} // as the leader gets it
	for _, c := range []struct {
		op        *jobpb.Op
		principal string
		tenant    string
	}{
		{theirs, "mail", ":mail"}, {theirs, "invoices", "billing"}, {theirs, "", ""}, {theirs, job.SystemPrincipal, "billing"},
		{of, "", ":mail"}, {theirs, "nobody", ":nobody"},
		{theirs, "auditor", ":auditor"}, {add("", "billing.a", 0), "auditor", ":auditor"}, // refused in vain
		{theirs, "billing", ":billing"}, // the id of the token is the name of the namespace
		{add("", "billing.a", 0), "mail", ":mail"}, {add("", "billing.a", 0), "invoices", "billing"}, {add("", "mail.a", 0), "mail", ""},
	} {
		require.Equal(t, c.tenant, s.tenantOf([]*jobpb.Op{c.op}, c.principal), "%v of %q", c.op, c.principal)
	}
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
