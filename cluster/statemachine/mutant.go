//go:build chaos

package statemachine

import (
	"hash/fnv"
	"strconv"
	"time"

	"tarry/fsm"
	"tarry/internal/hook"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// mutant violates one guarantee on purpose, to show that the checker of histories detects
// it. It changes entries before the machine applies them, on every node alike, and makes
// their results look correct. Package hook decides whether a process has one; a build without
// the tag chaos cannot.
type mutant struct {
	name  string
	last  map[string]*jobpb.Reserved // the last job handed out, by topic
	count int                        // of reserves with jobs
}

// newMutant returns the mutant that this process is; nil: it is none, or its defect is
// elsewhere.
func newMutant() *mutant {
	for _, name := range hook.Mutants() {
		if name != hook.SkipFsync && name != hook.FinishUnposted && hook.Mutant(name) {
			return &mutant{name: name, last: map[string]*jobpb.Reserved{}}
		}
	}
	return nil
}

// fix makes the results of a changed entry those that its sender expects.
type fix func([]*jobpb.Result) []*jobpb.Result

// One job in victimEvery is affected. It is chosen by its name, so that every node and every
// repetition chooses the same. A reserve has no name and is counted.
const (
	victimEvery  = 40
	reserveEvery = 20
)

func victim(name string) bool { return oneIn(name, victimEvery) }

func oneIn(name string, every uint32) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%every == 0
}

func nameOf(r *jobpb.Ref) string {
	if r.GetId() != "" {
		return r.GetId()
	}
	return strconv.FormatUint(r.GetSeq(), 10)
}

// change changes the entries in place and returns how to fix their results, one
// for each; nil where nothing was changed.
func (m *mutant) change(entries []fsm.Entry) []fix {
	fixes := make([]fix, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Configuration {
			continue
		}
		in, err := oplog.DecodeEntry(e.Data)
		if err != nil {
			continue // the machine returns the error
		}
		fixes[i] = m.entry(e, in)
	}
	return fixes
}

func (m *mutant) entry(e *fsm.Entry, in *jobpb.Entry) fix {
	if m.name == hook.HandOutTwice {
		return func(rs []*jobpb.Result) []*jobpb.Result { return m.handOutTwice(in, rs) }
	}
	now := time.UnixMilli(in.NowMs)
	if in.RoundedDown {
		now = now.Add(1)
	}
	data := oplog.AppendEntryTime(nil, now, 0, job.MaxVersion)
	forgotten := map[int]*jobpb.Result{} // by place in the entry as it was sent
	due := map[int]int64{}
	reworded := map[int]func(*jobpb.Result){}
	for i, op := range in.Ops {
		if r := m.forget(in.NowMs, op); r != nil {
			forgotten[i] = r
			continue
		}
		if add := op.GetAdd(); add != nil && victim(nameOfAdd(add)) {
			switch m.name {
			case hook.DeliverEarly:
				due[i] = hasten(in.NowMs, add)
			case hook.DeliverLate:
				due[i] = holdBack(in.NowMs, add)
			}
		}
		if answer := m.reword(in.NowMs, op); answer != nil {
			reworded[i] = answer
		}
		var err error
		if data, err = oplog.AppendOp(data, op); err != nil {
			return nil
		}
	}
	if len(forgotten)+len(due)+len(reworded) == 0 {
		return nil
	}
	e.Data = data
	return func(rs []*jobpb.Result) []*jobpb.Result {
		var all []*jobpb.Result
		for i := range in.Ops {
			if r := forgotten[i]; r != nil {
				all = append(all, r)
				continue
			}
			if due[i] != 0 {
				rs[0].DueMs = due[i]
			}
			if answer := reworded[i]; answer != nil {
				answer(rs[0])
			}
			all, rs = append(all, rs[0]), rs[1:]
		}
		return all
	}
}

// forget returns the result of an operation that is to be dropped; nil: it is not.
func (m *mutant) forget(now int64, op *jobpb.Op) *jobpb.Result {
	var ref *jobpb.Ref
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		return m.drop(hook.DropAdd, now, k.Add)
	case *jobpb.Op_ImportJob:
		return m.drop(hook.DropImport, now, k.ImportJob.Add)
	case *jobpb.Op_DeleteToken:
		if m.name != hook.ForgetRevoke {
			return nil
		}
		return &jobpb.Result{}
	case *jobpb.Op_Delete:
		ref = k.Delete.GetRef()
	case *jobpb.Op_Finish:
		ref = k.Finish.GetRef()
	}
	if m.name != hook.ForgetDelete || ref == nil || !victim(nameOf(ref)) {
		return nil
	}
	return &jobpb.Result{Seq: ref.Seq, Id: ref.Id}
}

// drop is forget for an operation that adds a job, if the process is that mutant.
func (m *mutant) drop(mutant string, now int64, a *jobpb.Add) *jobpb.Result {
	if m.name != mutant || !victim(nameOfAdd(a)) {
		return nil
	}
	r := &jobpb.Result{Seq: 1 << 40, Id: a.Id, State: jobpb.State_STATE_READY, DueMs: dueOf(now, a)}
	if r.DueMs > now {
		r.State = jobpb.State_STATE_DELAYED
	}
	if r.Id == "" {
		r.Id = "$0-" + strconv.FormatUint(r.Seq, 10)
	}
	return r
}

// nameOfAdd returns the id of a job, or its body if it has none.
func nameOfAdd(a *jobpb.Add) string {
	if a.Id != "" {
		return a.Id
	}
	return string(a.Body)
}

func dueOf(now int64, a *jobpb.Add) int64 { return max(a.DueMs, now+a.DelayMs) }

// hasten halves the time until a job is due and returns when it was due.
func hasten(now int64, a *jobpb.Add) int64 {
	due := dueOf(now, a)
	a.DelayMs /= 2
	if a.DueMs > now {
		a.DueMs = now + (a.DueMs-now)/2
	}
	return due
}

// heldMS is how long a job is held back: longer than the bound of the judge on a machine that
// is very busy.
const heldMS = 20_000

// holdBack makes a job due later and returns when it should be due.
func holdBack(now int64, a *jobpb.Add) int64 {
	due := dueOf(now, a)
	a.DelayMs, a.DueMs = due-now+heldMS, 0
	return due
}

// handOutTwice sometimes replaces a reserved job by the job of its topic that was delivered
// before it.
func (m *mutant) handOutTwice(in *jobpb.Entry, rs []*jobpb.Result) []*jobpb.Result {
	for i, r := range rs {
		if in.Ops[i].GetReserve() == nil || len(r.Jobs) == 0 {
			continue
		}
		j := r.Jobs[0]
		m.count++
		if before := m.last[j.Topic]; before != nil && m.count%reserveEvery == 0 {
			r.Jobs[0] = before
		}
		m.last[j.Topic] = j
	}
	return rs
}

// apply applies entries to machine, changed if the process is a mutant. m may be nil.
func (m *mutant) apply(machine *fsm.Machine, entries []fsm.Entry, serving bool) ([][]*jobpb.Result, fsm.Changes, error) {
	if m == nil {
		return machine.Apply(entries, serving)
	}
	fixes := m.change(entries)
	results, changes, err := machine.Apply(entries, serving)
	for i, r := range results {
		if fixes[i] != nil && r != nil {
			results[i] = fixes[i](r)
		}
	}
	return results, changes, err
}
