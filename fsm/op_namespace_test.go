package fsm

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

func opPutNamespace(n *jobpb.Namespace) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: &jobpb.PutNamespace{Namespace: n}}, Principal: job.SystemPrincipal}
}

func opDeleteNamespace(name string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_DeleteNamespace{DeleteNamespace: &jobpb.DeleteNamespace{Name: name}}, Principal: job.SystemPrincipal}
}

// billing is a namespace with the prefix "billing." and quotas.
func billing(q *jobpb.Quotas) *jobpb.Op {
	return opPutNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "billing.", Quotas: q})
}

// checkNamespaceMemory compares the namespaces in memory with those in the store, and those of
// the topics with their names.
func checkNamespaceMemory(m *Machine) error {
	stored, err := record.ReadNamespaces(m.store.db)
	if err != nil {
		return err
	}
	if len(stored) != len(m.namespaces) || len(stored) != len(m.Namespaces().All()) {
		return fmt.Errorf("%d namespaces, %d in memory, %d for others", len(stored), len(m.namespaces), len(m.Namespaces().All()))
	}
	for i, n := range m.namespaces {
		if !reflect.DeepEqual(stored[i].Def.String(), n.Def.String()) || stored[i].Usage != n.Usage || n.touched || n.gone {
			return fmt.Errorf("namespace %+v is in memory as %+v", stored[i], n)
		}
		if m.Namespaces().All()[i] != n.Def {
			return fmt.Errorf("others see namespace %v as %v", n.Def, m.Namespaces().All()[i])
		}
	}
	for _, n := range m.namespaces {
		if want := m.settingsUnder(n.Def.TopicPrefix); n.settings != want {
			return fmt.Errorf("namespace %q has settings of %d topics, counted are %d", n.Def.Name, want, n.settings)
		}
	}
	for _, t := range m.topics {
		if t.namespace != m.namespaceOf(t.name) {
			return fmt.Errorf("topic %q is in the namespace %+v", t.name, t.namespace)
		}
	}
	if len(m.tx.namespaces) > 0 || m.tx.quotaChecked {
		return errors.New("something of namespaces is left of a transaction")
	}
	return nil
}

// held returns what a namespace holds, by a view.
func (r *rig) held(name string) record.Usage {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	n, err := v.Namespace(name)
	require.NoError(r.t, err)
	require.NotNil(r.t, n)
	return record.Usage{Jobs: n.Jobs, Bytes: n.Bytes, Topics: n.Topics}
}

func TestANamespaceCountsWhatIsThere(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "billing.a", Body: []byte("12345")}), opAdd(&jobpb.Add{Topic: "billing.b", DelayMs: 5}),
		opAdd(&jobpb.Add{Topic: "billing", Body: []byte("1")}), opAdd(&jobpb.Add{Topic: "billinh", Body: []byte("1")}))
	require.NotZero(t, r.one(billing(nil)).GetDetails().GetNamespaceRevision())
	require.Equal(t, record.Usage{Jobs: 2, Bytes: 5, Topics: 2}, r.held("billing"))
	r.do(opAdd(&jobpb.Add{Topic: "billing.a", Body: []byte("123")}), opDelete(bySeq(1)))
	require.Equal(t, record.Usage{Jobs: 2, Bytes: 3, Topics: 2}, r.held("billing"))
	r.reopen()
	require.Equal(t, record.Usage{Jobs: 2, Bytes: 3, Topics: 2}, r.held("billing"), "after a restart")
	r.one(opPutNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "billinh"}))
	require.Equal(t, record.Usage{Jobs: 1, Bytes: 1, Topics: 1}, r.held("billing"), "with another prefix")
}

func TestPuttingANamespaceTwiceChangesNothing(t *testing.T) {
	r := newRig(t, Options{})
	put := billing(&jobpb.Quotas{Jobs: new(uint64(3))})
	first := r.one(put)
	again := r.one(put)
	require.True(t, again.Existing)
	require.Equal(t, first.Details.NamespaceRevision, again.Details.NamespaceRevision)
	put.GetPutNamespace().IfRevision = new(uint64(0))
	require.Equal(t, jobpb.Code_OK, r.one(put).Code, "a request may be repeated")
	other := billing(&jobpb.Quotas{Jobs: new(uint64(4))})
	other.GetPutNamespace().IfRevision = new(uint64(0))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(other).Code)
	other.GetPutNamespace().IfRevision = new(first.Details.NamespaceRevision)
	require.Equal(t, jobpb.Code_OK, r.one(other).Code)
}

func TestARevisionOfANamespaceIsNotUsedAgain(t *testing.T) {
	r := newRig(t, Options{})
	first := r.one(billing(nil)).Details.NamespaceRevision
	stale := opDeleteNamespace("billing")
	stale.GetDeleteNamespace().IfRevision = new(first + 1)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(stale).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opDeleteNamespace("billing")).Code)
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opDeleteNamespace("billing")).Code)
	require.Greater(t, r.one(billing(nil)).Details.NamespaceRevision, first)
}

func TestATopicIsInOneNamespace(t *testing.T) {
	r := newRig(t, Options{})
	r.one(billing(nil))
	for prefix, code := range map[string]jobpb.Code{
		"billing.": jobpb.Code_INVALID, "billing.x": jobpb.Code_INVALID, "b": jobpb.Code_INVALID, "billinh": jobpb.Code_OK,
	} {
		res := r.one(opPutNamespace(&jobpb.Namespace{Name: "other", TopicPrefix: prefix}))
		require.Equal(t, code, res.Code, prefix)
		if code != jobpb.Code_OK {
			require.Equal(t, "topic_prefix", res.Details.Field)
			require.Contains(t, res.Message, `namespace "billing" has "billing."`)
		}
	}
	require.Equal(t, jobpb.Code_OK, r.one(opPutNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "billing.x"})).Code, "it may change its own")
}

func TestDeletingANamespaceLeavesItsJobs(t *testing.T) {
	r := newRig(t, Options{})
	r.do(billing(&jobpb.Quotas{Jobs: new(uint64(1))}), opAdd(&jobpb.Add{Topic: "billing.a"}))
	require.Equal(t, jobpb.Code_OVER_QUOTA, r.one(opAdd(&jobpb.Add{Topic: "billing.a"})).Code)
	// In one entry, so that the transaction has both.
	res := r.do(opAdd(&jobpb.Add{Topic: "other"}), opDeleteNamespace("billing"), opAdd(&jobpb.Add{Topic: "billing.a"}))
	require.Equal(t, jobpb.Code_OK, res[2].Code)
	require.EqualValues(t, 2, r.topic("billing.a").Ready)
	require.Nil(t, r.m.Namespaces())
}

func TestThereIsALimitOnNamespaces(t *testing.T) {
	r := newRig(t, Options{})
	for i := range r.m.limits.MaxNamespaces {
		require.Equal(t, jobpb.Code_OK, r.one(opPutNamespace(&jobpb.Namespace{Name: fmt.Sprintf("n%d", i), TopicPrefix: fmt.Sprintf("n%d.", i)})).Code)
	}
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opPutNamespace(&jobpb.Namespace{Name: "more", TopicPrefix: "more."})).Code)
	require.Equal(t, "n999", r.m.Namespaces().Of("n999.x").GetName())
	require.Nil(t, r.m.Namespaces().Of("n999"))
	require.Nil(t, r.m.Namespaces().Of("a"))
}

func TestASnapshotHasTheNamespaces(t *testing.T) {
	r := newRig(t, Options{})
	r.do(billing(&jobpb.Quotas{Jobs: new(uint64(1))}), opAdd(&jobpb.Add{Topic: "billing.a", Body: []byte("12")}))
	other := newRig(t, Options{})
	install(t, r, other)
	require.Equal(t, record.Usage{Jobs: 1, Bytes: 2, Topics: 1}, other.held("billing"))
	require.Equal(t, r.digest(), other.digest())
	other.index = r.index
	require.Equal(t, jobpb.Code_OVER_QUOTA, other.one(opAdd(&jobpb.Add{Topic: "billing.b"})).Code)
}

// One namespace with many topics that are due does not delay the others: each has its share.
func TestAnAdvanceIsSharedBetweenNamespaces(t *testing.T) {
	r := newRig(t, Options{})
	r.one(billing(nil))
	for i := range 30 {
		for range 4 {
			r.one(opAdd(&jobpb.Add{Topic: fmt.Sprintf("billing.%d", i), DelayMs: 5}))
		}
	}
	r.one(opPutNamespace(&jobpb.Namespace{Name: "mail", TopicPrefix: "mail."}))
	for range 20 {
		r.one(opAdd(&jobpb.Add{Topic: "mail.x", DelayMs: 6}))
		r.one(opAdd(&jobpb.Add{Topic: "none", DelayMs: 6}))
	}
	r.now += 10
	require.EqualValues(t, 60, r.one(opAdvance(60)).Count)
	require.EqualValues(t, 20, r.topic("mail.x").Ready)
	require.EqualValues(t, 20, r.topic("none").Ready)
	require.True(t, r.one(opAdvance(60)).More)
	require.False(t, r.one(opAdvance(60)).More)
}
