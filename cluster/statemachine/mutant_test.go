//go:build chaos

package statemachine

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/internal/hook"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// mutantRig applies operations to a machine through a mutant.
type mutantRig struct {
	*testing.T
	a     *Adapter
	index uint64
}

func newMutantRig(t *testing.T, name string) *mutantRig {
	n := newNode(t, "n0")
	n.open()
	t.Cleanup(n.closeDisks)
	a := New(n.machine, Options{Fatal: n.fatal})
	a.SetServing(true)
	a.mutant = &mutant{name: name, last: map[string]*jobpb.Reserved{}}
	return &mutantRig{T: t, a: a}
}

// do applies one entry at an instant and returns its results.
func (r *mutantRig) do(now int64, ops ...*jobpb.Op) []*jobpb.Result {
	data := oplog.AppendEntryHeader(nil, now)
	for _, op := range ops {
		var err error
		data, err = oplog.AppendOp(data, op)
		require.NoError(r, err)
	}
	r.index++
	results := r.a.ApplyBatch([]*raft.Log{{Index: r.index, Term: 1, Type: raft.LogCommand, Data: data}})[0].([]*jobpb.Result)
	require.Len(r, results, len(ops), "the mutant answers everything")
	for _, one := range results {
		require.Equal(r, jobpb.Code_OK, one.Code, one.Message)
	}
	return results
}

func addOp(id string, delay int64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: id, Topic: "t", TtrMs: 1e6, DelayMs: delay}}}
}

func reserveOp(maximum uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: maximum}}}
}

func advanceOp() *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1000}}}
}

const mutantJobs = 4 * victimEvery

func (r *mutantRig) addAll(delay int64) {
	for i := range mutantJobs {
		rs := r.do(1000, addOp(fmt.Sprint("job-", i), delay), addOp(fmt.Sprint("other-", i), 1e6))
		require.Equal(r, fmt.Sprint("job-", i), rs[0].Id)
		require.Equal(r, fmt.Sprint("other-", i), rs[1].Id)
		require.EqualValues(r, 1000+delay, rs[0].DueMs)
	}
}

func TestMutantForgetsAdds(t *testing.T) {
	r := newMutantRig(t, hook.DropAdd)
	r.addAll(0)
	got := len(r.do(1000, reserveOp(1000))[0].Jobs)
	require.Less(t, got, mutantJobs)
	require.Greater(t, got, mutantJobs/2)
}

func TestMutantDeliversEarly(t *testing.T) {
	r := newMutantRig(t, hook.DeliverEarly)
	r.addAll(1000)
	got := len(r.do(1600, advanceOp(), reserveOp(1000))[1].Jobs)
	require.NotZero(t, got)
	require.Less(t, got, mutantJobs/2)
}

func TestMutantDeliversLate(t *testing.T) {
	r := newMutantRig(t, hook.DeliverLate)
	r.addAll(1000)
	got := len(r.do(2000, advanceOp(), reserveOp(1000))[1].Jobs)
	require.Less(t, got, mutantJobs)
	require.Greater(t, got, mutantJobs/2)
	require.Len(t, r.do(2000+heldMS, advanceOp(), reserveOp(1000))[1].Jobs, mutantJobs-got)
}

func TestMutantForgetsDeletes(t *testing.T) {
	r := newMutantRig(t, hook.ForgetDelete)
	r.addAll(0)
	for i := range mutantJobs {
		r.do(1000, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Id: fmt.Sprint("job-", i)}}}})
	}
	got := len(r.do(1000, reserveOp(1000))[0].Jobs)
	require.NotZero(t, got)
	require.Less(t, got, mutantJobs/2)
}

func TestMutantHandsOutTwice(t *testing.T) {
	r := newMutantRig(t, hook.HandOutTwice)
	r.addAll(0)
	times := map[string]int{}
	for range 2 * reserveEvery {
		for _, j := range r.do(1000, reserveOp(1))[0].Jobs {
			times[j.Id]++
		}
	}
	require.Len(t, times, 2*reserveEvery-2, "two reserves got a job that another has")
}

func TestMutantHalvesBatches(t *testing.T) {
	r := newMutantRig(t, hook.HalfBatch)
	for i := range 10 * halvedEvery {
		c := &jobpb.AtomicAdd{}
		for n := range 3 {
			c.Adds = append(c.Adds, addOp(fmt.Sprint("job-", i, "-", n), 0).GetAdd())
		}
		require.Len(r, r.do(1000, &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: c}})[0].Details.Parts, 3)
	}
	got := len(r.do(1000, reserveOp(1000))[0].Jobs)
	require.Less(t, got, 30*halvedEvery)
	require.Greater(t, got, 20*halvedEvery)
}

func TestMutantForgetsPostpones(t *testing.T) {
	r := newMutantRig(t, hook.ForgetPostpone)
	r.do(1000, addOp("a", 1000))
	again := addOp("a", 5000)
	again.GetAdd().IfExists = jobpb.IfExists_IF_EXISTS_POSTPONE
	answer := r.do(1500, again)[0]
	require.True(t, answer.Postponed)
	require.EqualValues(t, 6500, answer.DueMs)
	require.Len(t, r.do(2000, advanceOp(), reserveOp(1))[1].Jobs, 1)
}

func TestMutantIgnoresConditions(t *testing.T) {
	r := newMutantRig(t, hook.IgnoreCondition)
	r.do(1000, addOp("a", 1000))
	priority := uint32(7)
	r.do(1000, &jobpb.Op{Kind: &jobpb.Op_Update{Update: &jobpb.Update{
		Ref: &jobpb.Ref{Id: "a"}, Priority: &priority, Condition: &jobpb.Condition{Revision: 5},
	}}})
}

func TestMutantForgetsHeaders(t *testing.T) {
	r := newMutantRig(t, hook.ForgetHeader)
	r.do(1000, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{IndexHeaders: []string{"h"}}}}})
	const jobs = 10 * unfoundEvery
	for i := range jobs {
		add := addOp(fmt.Sprint("job-", i), 0)
		add.GetAdd().Options = &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "h", Value: "v"}}}
		r.do(1000, add)
	}
	v := r.a.machine.View()
	defer v.Close()
	page, err := v.Jobs(&jobpb.JobQuery{ByHeader: true, Max: 1000, Filter: &jobpb.Filter{Headers: []*jobpb.Header{{Name: "h", Value: "v"}}}})
	require.NoError(t, err)
	require.Less(t, len(page.Jobs), jobs)
	require.NotEmpty(t, page.Jobs)
}

func importOp(id string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: &jobpb.ImportJob{Add: &jobpb.Add{Id: id, Topic: "t", TtrMs: 1e6, DueMs: 500}, Attempts: 2}}}
}

func TestMutantForgetsImports(t *testing.T) {
	r := newMutantRig(t, hook.DropImport)
	for i := range mutantJobs {
		require.Equal(t, fmt.Sprint("job-", i), r.do(1000, importOp(fmt.Sprint("job-", i)))[0].Id)
	}
	got := len(r.do(1000, reserveOp(1000))[0].Jobs)
	require.Less(t, got, mutantJobs)
	require.Greater(t, got, mutantJobs/2)
}

func TestMutantForgetsAttemptsOfImports(t *testing.T) {
	r := newMutantRig(t, hook.ForgetAttempts)
	r.do(1000, importOp("a"))
	require.EqualValues(t, 1, r.do(1000, reserveOp(1))[0].Jobs[0].Attempts)
}

func TestMutantsChangeQuotas(t *testing.T) {
	for mutant, jobs := range map[string]uint64{hook.ForgetQuota: 0, hook.HalveQuota: 2} {
		r := newMutantRig(t, mutant)
		r.do(1000, &jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: &jobpb.PutNamespace{Namespace: &jobpb.Namespace{Name: "n", TopicPrefix: "t", Quotas: &jobpb.Quotas{Jobs: new(uint64(4))}}}}, Principal: job.SystemPrincipal})
		require.Equal(t, jobs, r.a.machine.Namespaces().Of("t").GetQuotas().GetJobs(), mutant)
	}
}

func TestMutantForgetsRevocations(t *testing.T) {
	r := newMutantRig(t, hook.ForgetRevoke)
	r.do(1000, &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: &jobpb.Token{Id: "w", Hash: make([]byte, 32)}}}, Principal: job.SystemPrincipal})
	res := r.do(1000, &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "w"}}, Principal: job.SystemPrincipal})
	require.Equal(t, jobpb.Code_OK, res[0].Code)
	require.NotNil(t, r.a.machine.Auth().Token("w"))
}

func TestSoundProcessIsNoMutant(t *testing.T) {
	require.Nil(t, newMutant())
}
