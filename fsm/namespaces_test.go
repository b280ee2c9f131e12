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

func codes(rs []*jobpb.Result) (list []jobpb.Code) {
	for _, r := range rs {
		list = append(list, r.Code)
	}
	return list
}

// withTTR gives the adds of an atomic add the time to run that opAdd gives.
func withTTR(adds []*jobpb.Add) []*jobpb.Add {
	for _, a := range adds {
		opAdd(a)
	}
	return adds
}

// quotaOf returns quotas; 0: none.
func quotaOf(jobs, bytes, topics uint64) *jobpb.Quotas {
	q := &jobpb.Quotas{}
	for _, one := range []struct {
		to    **uint64
		limit uint64
	}{{&q.Jobs, jobs}, {&q.Bytes, bytes}, {&q.Topics, topics}} {
		if one.limit > 0 {
			*one.to = new(one.limit)
		}
	}
	return q
}

func TestAQuotaIsExact(t *testing.T) {
	add := func(topic, body string) *jobpb.Op { return opAdd(&jobpb.Add{Topic: topic, Body: []byte(body)}) }
	for name, c := range map[string]struct {
		quotas  *jobpb.Quotas
		ops     []*jobpb.Op
		refused int // which is refused; all others are done
		message string
	}{
		"jobs": {quotaOf(2, 0, 0), []*jobpb.Op{add("billing.a", ""), add("billing.b", ""), add("billing.a", ""), opDelete(bySeq(2)), add("billing.c", "")}, 2,
			`namespace "billing" has no room: its quota, jobs, is 2; in use: 2, this would add: 1`},
		"bytes": {quotaOf(0, 5, 0), []*jobpb.Op{add("billing.a", "123"), add("billing.a", "12"), add("billing.a", "1"), add("billing.a", ""), opDelete(bySeq(3)), add("billing.a", "12")}, 2,
			`namespace "billing" has no room: its quota, bytes, is 5; in use: 5, this would add: 1`},
		"topics": {quotaOf(0, 0, 1), []*jobpb.Op{add("billing.a", ""), add("billing.b", ""), add("billing.a", ""), add("billing", "")}, 1,
			`namespace "billing" has no room: its quota, topics, is 1; in use: 1, this would add: 1`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(billing(c.quotas)) // seq 1 is its revision
			for i, res := range r.do(c.ops...) {
				if i != c.refused {
					require.Equal(t, jobpb.Code_OK, res.Code, "%d: %s", i, res.Message)
					continue
				}
				require.Equal(t, jobpb.Code_OVER_QUOTA, res.Code)
				require.Equal(t, c.message, res.Message)
			}
		})
	}
}

// Each operation that can make a topic needs room for it.
func TestNoOperationMakesATopicBeyondTheQuota(t *testing.T) {
	dead := func(r *rig) { // seq 3 is dead in the topic from, 4 delayed
		r.do(opAdd(&jobpb.Add{Topic: "from"}), opAdd(&jobpb.Add{Topic: "from", Id: "taken", DelayMs: 1000}))
		j := r.one(opReserve(1, "from")).Jobs[0]
		r.one(opBury(&jobpb.Bury{Ref: fenced(j.Seq, j.Generation)}))
	}
	for name, op := range map[string]*jobpb.Op{
		"add":        opAdd(&jobpb.Add{Topic: "billing.b"}),
		"replace":    opAdd(&jobpb.Add{Topic: "billing.b", Id: "taken", IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}),
		"atomic add": opAtomicAdd(&jobpb.AtomicAdd{Adds: withTTR([]*jobpb.Add{{Topic: "billing.b"}})}),
		"pause":      opPause("billing.b", 5, true),
		"endless":    {Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "billing.b", Endless: true, Create: true}}},
		"resume":     opPause("billing.b", 0, true),
		"move":       opMove(&jobpb.MoveJobs{Ref: bySeq(3), To: "billing.b"}),
		"move all":   opMove(&jobpb.MoveJobs{Topic: "from", To: "billing.b", Max: 10}),
		"kick":       {Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: bySeq(3), ToTopic: "billing.b"}}},
		"kick topic": {Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "from", Max: 10, ToTopic: "billing.b", Sweep: &jobpb.Sweep{Scan: 100}}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.do(billing(quotaOf(0, 0, 1)), opAdd(&jobpb.Add{Topic: "billing.a"}))
			dead(r)
			require.Equal(t, jobpb.Code_OVER_QUOTA, r.one(op).Code)
			require.EqualValues(t, 1, r.held("billing").Topics)
			r.one(billing(quotaOf(0, 0, 2)))
			require.Equal(t, jobpb.Code_OK, r.one(op).Code, "with room it is done")
			require.EqualValues(t, 2, r.held("billing").Topics)
		})
	}
}

func TestATopicThatExistsIsPausedAboveTheQuota(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "billing.a"}), billing(&jobpb.Quotas{Topics: new(uint64(0))}))
	require.Equal(t, jobpb.Code_OK, r.one(opPause("billing.a", 5, true)).Code)
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opPause("billing.b", 5, false)).Code, "nothing would be made")
}

// Settings stay without their topic, so a tenant could have any number of them.
func TestSettingsAreHeldToTheQuotaOfTopics(t *testing.T) {
	r := newRig(t, Options{})
	set := func(topic string, retain int64) jobpb.Code {
		return r.one(opRetain(topic, retain)).Code
	}
	r.one(billing(quotaOf(0, 0, 2)))
	require.Equal(t, jobpb.Code_OK, set("billing.a", 1000))
	require.Equal(t, jobpb.Code_OK, set("billing.b", 1000))
	over := r.one(opRetain("billing.c", 1000))
	require.Equal(t, jobpb.Code_OVER_QUOTA, over.Code)
	require.Equal(t, `namespace "billing" has no room for settings of another topic: its quota, topics, is 2; topics with settings: 2`, over.Message)
	require.Equal(t, jobpb.Code_OK, set("other", 1000), "in no namespace")
	r.reopen()
	require.Equal(t, jobpb.Code_OVER_QUOTA, set("billing.c", 1000))
	require.Equal(t, jobpb.Code_OK, set("billing.a", 2000), "what is there can be changed")
	r.one(billing(quotaOf(0, 0, 1)))
	require.Equal(t, jobpb.Code_OK, set("billing.b", 3000), "above a lower quota, too")
	require.Equal(t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "billing.a"})).Code)
	require.Equal(t, jobpb.Code_OVER_QUOTA, set("billing.c", 1000))
	require.Equal(t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "billing.b"})).Code)
	require.Equal(t, jobpb.Code_OK, set("billing.c", 1000))
	r.do(opPutNamespace(&jobpb.Namespace{Name: "billing", TopicPrefix: "o", Quotas: quotaOf(0, 0, 1)}))
	require.Equal(t, jobpb.Code_OVER_QUOTA, set("others", 1000), "with another prefix, others are counted")
	require.Equal(t, jobpb.Code_OK, set("billing.d", 1000))
}

// What takes jobs out, or leaves their number, is done above a quota that was lowered.
func TestAQuotaRefusesNothingThatDeliversOrEndsJobs(t *testing.T) {
	r := newRig(t, Options{})
	for range 6 {
		r.one(opAdd(&jobpb.Add{Topic: "billing.a", MaxAttempts: 1, Body: []byte("b")}))
	}
	r.do(billing(&jobpb.Quotas{Jobs: new(uint64(0)), Bytes: new(uint64(0)), Topics: new(uint64(0))}))
	reserved := r.one(opReserve(5, "billing.a")).Jobs
	require.Len(t, reserved, 5)
	ref := func(i int) *jobpb.Ref { return fenced(reserved[i].Seq, reserved[i].Generation) }
	require.NotContains(t, codes(r.do(
		opFinish(ref(0)), opRelease(&jobpb.Release{Ref: ref(1), DelayMs: 5}), opBury(&jobpb.Bury{Ref: ref(2)}), opTouch(ref(3), 10),
		opKick(bySeq(reserved[2].Seq)), opUpdate(&jobpb.Update{Ref: bySeq(6), Body: []byte("c")}), opUpdate(&jobpb.Update{Ref: bySeq(6), Body: []byte{}}),
		opDelete(bySeq(6)),
	)), jobpb.Code_OVER_QUOTA)
	r.now += maxTTRMS
	require.Equal(t, jobpb.Code_OK, r.one(opAdvance(100)).Code)
	require.Equal(t, record.Usage{Jobs: 4, Bytes: 4, Topics: 1}, r.held("billing"))
	require.Equal(t, jobpb.Code_OVER_QUOTA, r.one(opUpdate(&jobpb.Update{Ref: bySeq(reserved[2].Seq), Body: []byte("longer")})).Code)
}

func TestAnAddThatIsRepeatedNeedsNoRoom(t *testing.T) {
	r := newRig(t, Options{})
	add := func(body string, how jobpb.IfExists) *jobpb.Op {
		return opAdd(&jobpb.Add{Topic: "billing.a", Id: "a", Body: []byte(body), IfExists: how})
	}
	r.do(billing(quotaOf(1, 3, 0)), add("123", 0))
	again := r.one(add("123", 0))
	require.True(t, again.Existing)
	require.True(t, r.one(add("12", jobpb.IfExists_IF_EXISTS_REPLACE)).Replaced, "the old job makes room")
	require.Equal(t, jobpb.Code_OVER_QUOTA, r.one(add("1234", jobpb.IfExists_IF_EXISTS_REPLACE)).Code)
	require.Equal(t, record.Usage{Jobs: 1, Bytes: 2, Topics: 1}, r.held("billing"), "and it is still there")
}

// The next step of a chain takes the place of the job before; if it finds none, that is not
// finished either.
func TestAFinishIsNotLostForItsThen(t *testing.T) {
	r := newRig(t, Options{})
	r.do(billing(quotaOf(1, 3, 0)), opAdd(&jobpb.Add{Topic: "billing.a", Body: []byte("123")}))
	j := r.one(opReserve(1, "billing.a")).Jobs[0]
	then := func(adds ...*jobpb.Add) *jobpb.Op {
		return opAtomicAdd(&jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: fenced(j.Seq, j.Generation)}, Adds: withTTR(adds)})
	}
	before := r.digest()
	for _, op := range []*jobpb.Op{
		then(&jobpb.Add{Topic: "billing.a"}, &jobpb.Add{Topic: "billing.b"}),
		then(&jobpb.Add{Topic: "billing.a", Body: []byte("1234")}),
		then(&jobpb.Add{Topic: "other"}, &jobpb.Add{Topic: "billing.a", Body: []byte("1234")}),
	} {
		require.Equal(t, jobpb.Code_OVER_QUOTA, r.one(op).Code)
		require.Equal(t, before, r.digest(), "nothing is done")
	}
	require.Equal(t, jobpb.Code_OK, r.one(then(&jobpb.Add{Topic: "billing.b", Body: []byte("321")}, &jobpb.Add{Topic: "other", Body: []byte("long")})).Code)
	require.Equal(t, record.Usage{Jobs: 1, Bytes: 3, Topics: 2}, r.held("billing"))

	r.retain("billing.b", hourMS)
	j = r.one(opReserve(1, "billing.b")).Jobs[0]
	require.Equal(t, jobpb.Code_OVER_QUOTA, r.one(then(&jobpb.Add{Topic: "billing.b"})).Code, "what is retained is still there")
}

func TestABatchThatIsAtomicFitsAsAWhole(t *testing.T) {
	r := newRig(t, Options{})
	r.one(billing(quotaOf(2, 0, 1)))
	batch := func(topics ...string) *jobpb.Op {
		op := &jobpb.AtomicAdd{}
		for _, topic := range topics {
			op.Adds = append(op.Adds, &jobpb.Add{Topic: topic})
		}
		op.Adds = withTTR(op.Adds)
		return opAtomicAdd(op)
	}
	require.Equal(t, []jobpb.Code{jobpb.Code_OVER_QUOTA, jobpb.Code_OVER_QUOTA, jobpb.Code_OK, jobpb.Code_OVER_QUOTA}, codes(r.do(
		batch("billing.a", "billing.a", "billing.a"), batch("billing.a", "billing.b"), batch("billing.a", "billing.a"), batch("billing.a"))))
	require.Equal(t, record.Usage{Jobs: 2, Bytes: 0, Topics: 1}, r.held("billing"))
}

// Jobs that come from elsewhere need room like new ones; within a namespace they need none.
func TestJobsThatComeFromAnotherNamespaceNeedRoom(t *testing.T) {
	setUp := func(t *testing.T) *rig {
		r := newRig(t, Options{})
		r.one(opPutNamespace(&jobpb.Namespace{Name: "m", TopicPrefix: "m.", Quotas: quotaOf(3, 0, 2)}))
		for _, topic := range []string{"from", "from", "from", "m.a"} { // 2 to 5
			r.one(opAdd(&jobpb.Add{Topic: topic, MaxAttempts: 1, Body: []byte("1")}))
		}
		for _, j := range r.one(opReserve(3, "from")).Jobs {
			r.one(opBury(&jobpb.Bury{Ref: fenced(j.Seq, j.Generation)}))
		}
		return r
	}
	for name, c := range map[string]struct {
		op    *jobpb.Op
		first jobpb.Code
		times int // that it is done before it is refused
	}{
		"move one":  {opMove(&jobpb.MoveJobs{Ref: bySeq(2), To: "m.a"}), jobpb.Code_OK, 1},
		"move all":  {opMove(&jobpb.MoveJobs{Topic: "from", To: "m.a", Max: 10}), jobpb.Code_OVER_QUOTA, 0},
		"kick":      {&jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: bySeq(2), ToTopic: "m.a"}}}, jobpb.Code_OK, 1},
		"move swap": {opMove(&jobpb.MoveJobs{Topic: "from", To: "m.new", Max: 10}), jobpb.Code_OVER_QUOTA, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t)
			require.Equal(t, c.first, r.one(c.op).Code)
			require.EqualValues(t, 1+c.times, r.held("m").Jobs)
		})
	}
	t.Run("sweep", func(t *testing.T) {
		r := setUp(t)
		kick := func(from *jobpb.Progress) *jobpb.Result {
			return r.one(&jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "from", Max: 10, ToTopic: "m.new", Sweep: &jobpb.Sweep{Scan: 100, From: from}}}})
		}
		first := kick(nil)
		require.Equal(t, jobpb.Code_OK, first.Code)
		require.EqualValues(t, 2, first.Count, "as many as there is room for")
		require.NotNil(t, first.Details.GetNext(), "it is not at its end")
		require.Equal(t, jobpb.Code_OVER_QUOTA, kick(first.Details.Next).Code)
		require.EqualValues(t, 1, r.topic("from").Dead)
		r.one(opDelete(bySeq(5)))
		require.EqualValues(t, 1, kick(first.Details.Next).Count, "it continues with the job that had no room")
	})
	t.Run("within", func(t *testing.T) {
		r := setUp(t)
		r.one(opPutNamespace(&jobpb.Namespace{Name: "m", TopicPrefix: "m.", Quotas: &jobpb.Quotas{Jobs: new(uint64(0))}}))
		require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_OK}, codes(r.do(
			opMove(&jobpb.MoveJobs{Ref: bySeq(5), To: "m.b"}), opMove(&jobpb.MoveJobs{Topic: "m.b", To: "m.c", Max: 10}), opMove(&jobpb.MoveJobs{Topic: "m.c", To: "out", Max: 10}))))
		require.Equal(t, record.Usage{Topics: 3}, r.held("m"))
	})
}

func TestIDsBeginWithThePrefixOfTheNamespace(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPutNamespace(&jobpb.Namespace{Name: "m", TopicPrefix: "m.", IdPrefix: "m-"}))
	wrong := r.one(opAdd(&jobpb.Add{Topic: "m.a", Id: "x-1"}))
	require.Equal(t, jobpb.Code_INVALID, wrong.Code)
	require.Equal(t, "id", wrong.Details.Field)
	require.Equal(t, `id is "x-1"; the ids of jobs in namespace "m" begin with "m-"`, wrong.Message)
	require.Equal(t, []jobpb.Code{jobpb.Code_OK, jobpb.Code_OK, jobpb.Code_OK}, codes(r.do(
		opAdd(&jobpb.Add{Topic: "m.a"}), opAdd(&jobpb.Add{Topic: "m.a", Id: "m-1"}), opAdd(&jobpb.Add{Topic: "other", Id: "x-1"}))))
	batch := r.one(opAtomicAdd(&jobpb.AtomicAdd{Adds: withTTR([]*jobpb.Add{{Topic: "m.a"}, {Topic: "m.a", Id: "x-2"}})}))
	require.Equal(t, "jobs[1].id", batch.Details.Field)
	replaced := r.one(opAdd(&jobpb.Add{Topic: "m.a", Id: "x-1", IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}))
	require.Equal(t, jobpb.Code_INVALID, replaced.Code)

	daily := &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "m.a", TtrMs: 1000}}
	named := r.one(opPut("report", daily))
	require.Equal(t, jobpb.Code_INVALID, named.Code)
	require.Equal(t, "name", named.Details.Field)
	require.Equal(t, jobpb.Code_OK, r.one(opPut("m-report", daily)).Code)
}

func TestARunThatIsOverQuotaIsRecorded(t *testing.T) {
	r := newRig(t, Options{})
	r.do(billing(&jobpb.Quotas{Jobs: new(uint64(0))}),
		opPut("daily", &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "billing.a", TtrMs: 1000}}))
	now := r.one(opFire(&jobpb.FireSchedule{Name: "daily", Now: true, Runs: []*jobpb.ScheduledRun{{}}}))
	require.Equal(t, jobpb.Code_OVER_QUOTA, now.Code, "who starts it learns of it")
	v := r.m.View()
	defer v.Close()
	s, _, err := v.Schedule("daily")
	require.NoError(t, err)
	require.EqualValues(t, 1, s.State.Refused)
	require.Equal(t, jobpb.RunOutcome_RUN_REFUSED, s.State.Past[0].Outcome)
	require.Equal(t, jobpb.Code_OVER_QUOTA, s.State.Past[0].Code)
}
