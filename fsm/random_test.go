package fsm

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

var (
	seedFlag  = flag.Uint64("fsm.seed", 0, "seed of the random tests; 0: a new one each run")
	roundFlag = flag.Int("fsm.rounds", 6, "runs of each random test")
	stepFlag  = flag.Int("fsm.steps", 150, "log batches in a run")
)

// eachSeed runs f several times, each with a seed that is the subtest's name.
func eachSeed(t *testing.T, f func(t *testing.T, rng *rand.Rand)) {
	for i := range *roundFlag {
		seed := *seedFlag + uint64(i)
		if *seedFlag == 0 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("fsm.seed=%d", seed), func(t *testing.T) {
			f(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

// Two machines with different windows apply the same log in different batches, and one of
// them is flushed, reopened, crashed and moved to another directory all the time. Both must
// return what the model does and end with its state, and with the same digest.
func TestMachineMatchesModel(t *testing.T) {
	eachSeed(t, func(t *testing.T, rng *rand.Rand) {
		const maxTopics = 9
		troubled := newRig(t, Options{FS: vfs.NewCrashableMem(), windowCap: 2 + rng.IntN(12), windowBudget: 100, maxTopics: maxTopics, maxTargets: 1, maxRetained: 2, MemTableBytes: 64 << 10})
		calm := newRig(t, Options{maxTopics: maxTopics, maxTargets: 1, maxRetained: 2})
		s := &simulation{t: t, rng: rng, model: newModel(maxTopics), now: rigStart}
		at, other := 0, 0 // entries that each has applied
		for range *stepFlag {
			s.grow()
			at = s.applyLog(troubled, at, 1+rng.IntN(4))
			other = s.applyLog(calm, other, 1+rng.IntN(12))
			at = s.disturb(troubled, at)
			if rng.IntN(10) == 0 {
				at, other = s.applyLog(troubled, at, 1000), s.applyLog(calm, other, 1000)
				s.compare(troubled)
				s.compare(calm)
				require.Equal(t, calm.digest(), troubled.digest())
			}
		}
		at, other = s.applyLog(troubled, at, 1000), s.applyLog(calm, other, 1000)
		require.Equal(t, at, other)
		s.compare(troubled)
		s.compare(calm)
		require.Equal(t, calm.digest(), troubled.digest())
	})
}

// simulation makes a log of random operations, with the model's result of each.
type simulation struct {
	t     *testing.T
	rng   *rand.Rand
	model *model
	now   int64
	log   []Entry
	want  [][]*jobpb.Result
	due   []int64 // the model's nextDue after each entry

	sweeps []*jobpb.Progress // where sweeps ended
}

// grow appends a few entries to the log.
func (s *simulation) grow() {
	for range 1 + s.rng.IntN(5) {
		s.now += s.pick(0, 0, 1, 3, 10, 40, 500)
		if s.rng.IntN(60) == 0 {
			s.now += 3_700_000
		}
		now := s.now - s.pick(0, 0, 0, 20) // leaders' clocks differ
		index := uint64(len(s.log)+1) + 5
		if s.rng.IntN(15) == 0 {
			s.log = append(s.log, Entry{Index: index, Term: 1, Data: []byte{byte(index)}, Configuration: true})
			s.want = append(s.want, nil)
			s.due = append(s.due, s.model.nextDue())
			continue
		}
		var ops []*jobpb.Op
		want := []*jobpb.Result{}
		epoch := s.model.reset.epoch
		if epoch > 0 && s.rng.IntN(10) == 0 {
			epoch, now = epoch-1, now+s.pick(0, 700, 4_000_000) // it was under way when the clock was set back
		}
		s.model.startEntry(now, epoch)
		for range s.rng.IntN(8) {
			op := s.op()
			ops = append(ops, op)
			want = append(want, proto.Clone(s.model.apply(op)).(*jobpb.Result))
			s.keepSweep(want[len(want)-1])
		}
		if s.model.reset.epoch != epoch {
			s.now = s.model.clock // leaders go by the clock that was set back
		}
		s.log = append(s.log, Entry{Index: index, Term: 1, Data: encodeEntryAt(s.t, now, epoch, ops...)})
		s.want = append(s.want, want)
		s.due = append(s.due, s.model.nextDue())
	}
}

func (s *simulation) pick(of ...int64) int64 { return of[s.rng.IntN(len(of))] }

// consumer returns a consumer's name, mostly none.
func (s *simulation) consumer() string {
	return strings.Repeat("c", int(s.pick(0, 0, 0, 1, 64, 65)))
}

func (s *simulation) priority() uint32 { return uint32(s.pick(0, 1, 1023, 1024)) }

func (s *simulation) topic() string {
	if s.rng.IntN(40) == 0 {
		return fmt.Sprintf("rare-%d", s.rng.IntN(8))
	}
	return string(rune('a' + s.rng.IntN(5)))
}

// ref names a job, mostly one that existed at some time.
func (s *simulation) ref() *jobpb.Ref {
	ref := &jobpb.Ref{Seq: 1 + s.rng.Uint64N(s.model.lastSeq+1)}
	// New jobs are more likely to exist still.
	if s.rng.IntN(2) == 0 && s.model.lastSeq > 40 {
		ref.Seq = s.model.lastSeq - s.rng.Uint64N(40)
	}
	j := s.model.jobs[ref.Seq]
	switch s.rng.IntN(8) {
	case 0:
		ref = &jobpb.Ref{Id: fmt.Sprintf("id-%d", s.rng.IntN(40))}
	case 1:
		ref.Id = fmt.Sprintf("$%d-%d", s.rng.IntN(2), ref.Seq)
		ref.Seq = uint64(s.pick(0, int64(ref.Seq)))
	case 2:
		if j != nil {
			ref.Id = j.Id
		}
	case 3:
		if s.rng.IntN(10) == 0 {
			return &jobpb.Ref{Generation: 1}
		}
	}
	if j != nil && s.rng.IntN(2) == 0 {
		ref.Generation = j.generation + uint32(s.pick(0, 0, 0, 1)) - uint32(s.pick(0, 0, 0, 1))
	}
	return ref
}

func (s *simulation) op() *jobpb.Op {
	if s.rng.IntN(12) == 0 {
		return s.scheduleOp()
	}
	if names := slices.Sorted(maps.Keys(modelOps)); s.rng.IntN(30) < len(names) {
		return modelOps[names[s.rng.IntN(len(names))]].some(s)
	}
	reason := strings.Repeat("r", s.rng.IntN(3))
	switch n := s.rng.IntN(100); {
	case n < 34:
		return s.addOp()
	case n < 50:
		topics := []string{s.topic()}
		for range s.rng.IntN(4) {
			topics = append(topics, s.topic())
		}
		return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{
			Topics: topics, Max: uint32(s.pick(0, 1, 1, 2, 5, 30, 1000)),
			TtrMs: s.pick(0, 0, 5, 300, -1), MaxBytes: s.pick(0, 0, 1, 30), Consumer: s.consumer(),
		}}}
	case n < 57:
		return opFinish(s.ref())
	case n < 58:
		c := &jobpb.AtomicAdd{}
		if s.rng.IntN(3) > 0 {
			c.Finish = &jobpb.Finish{Ref: s.ref()}
		}
		for range s.rng.IntN(4) {
			c.Adds = append(c.Adds, s.addOp().GetAdd())
		}
		return &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: c}}
	case n < 60:
		return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: s.ref(), Condition: s.condition()}}}
	case n < 62:
		return opDeleteSparing(s.ref())
	case n < 64:
		return opReserveJob(s.ref(), s.pick(0, 0, 5, 300, -1))
	case n < 66:
		op := opPause(s.topic(), s.pick(0, 0, 0, 1, 30, 700, 700, 4_000_000, -1), s.rng.IntN(4) == 0)
		if s.rng.IntN(3) == 0 {
			op.GetPauseTopic().UntilMs = s.now + s.pick(-10, 0, 30, 700)
		}
		op.GetPauseTopic().Endless = s.rng.IntN(10) == 0
		return op
	case n < 69:
		return s.updateOp()
	case n < 72:
		return opRelease(&jobpb.Release{
			Ref: s.ref(), DelayMs: s.pick(0, 0, 1, 30, 2000, -1, 1_000_000_000_001),
			SetPriority: s.rng.IntN(3) == 0, Priority: s.priority(), Reason: reason,
			Undelivered: s.rng.IntN(4) == 0, Returned: s.rng.IntN(4) == 0, ReservedMs: s.now - s.pick(-5, 0, 1, 10, 100, 5000),
			Backoff: s.rng.IntN(2) == 0, Entropy: s.rng.Uint64(),
		})
	case n < 74:
		return opTouch(s.ref(), s.pick(0, 1, 50, 1000))
	case n < 80:
		return opBury(&jobpb.Bury{Ref: s.ref(), SetPriority: s.rng.IntN(3) == 0, Priority: s.priority(), Reason: reason})
	case n < 82:
		return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: s.ref(), ToTopic: s.anyTopic(), Condition: s.condition()}}}
	case n < 85:
		return s.manyOp()
	case n < 86:
		return opKickTopic(s.topic(), uint32(s.pick(0, 1, 3, 100)))
	case n < 87:
		return opKickTopicOrDelayed(s.topic(), uint32(s.pick(0, 1, 3, 100)))
	case n < 89:
		return s.settingsOp()
	case n < 97:
		return opAdvance(uint32(s.pick(0, 1, 2, 3, 7, 20, 1000)))
	case n < 98:
		return opMark("mark")
	case n == 98 && s.rng.IntN(2) == 0:
		return s.resetOp()
	case n < 99 && s.rng.IntN(2) == 0:
		return opRaise(job.MaxVersion) // once is enough, the rest changes nothing
	case n < 99:
		return opSetCluster(fmt.Sprintf("cluster-%d", s.rng.IntN(2)))
	default:
		if s.rng.IntN(2) == 0 {
			return opMigrate(uint32(s.pick(0, 1, 1, 3, 7)))
		}
		return opForget(fmt.Sprintf("server-%d", s.rng.IntN(5)))
	}
}

// condition returns a condition: mostly none, else one that often holds.
func (s *simulation) condition() *jobpb.Condition {
	switch s.rng.IntN(6) {
	case 0:
		return &jobpb.Condition{Revision: uint32(s.pick(0, 1, 1, 2, 3))}
	case 1:
		return &jobpb.Condition{States: []jobpb.State{jobpb.State(1 + s.rng.IntN(6)), jobpb.State(1 + s.rng.IntN(6))}}
	}
	switch s.rng.IntN(8) {
	case 0:
		return &jobpb.Condition{Topic: s.topic(), Filter: s.filter()}
	case 1:
		return &jobpb.Condition{Filter: s.filter()}
	}
	return nil
}

func (s *simulation) updateOp() *jobpb.Op {
	u := &jobpb.Update{Ref: s.ref(), Condition: s.condition()}
	switch s.rng.IntN(4) {
	case 0:
		u.DelayMs = new(s.pick(0, 0, 30, 700, -1))
	case 1:
		u.DueMs = new(s.now + s.pick(-10, 10, 300))
	}
	if s.rng.IntN(3) == 0 {
		u.Priority = new(s.priority())
	}
	if s.rng.IntN(4) == 0 {
		u.TtrMs = new(s.pick(0, 1, 300))
	}
	if s.rng.IntN(4) == 0 {
		u.MaxAttempts = new(uint32(s.pick(0, 1, 3)))
	}
	if s.rng.IntN(3) == 0 {
		u.Body, u.BodyKind = []byte(strings.Repeat("u", s.rng.IntN(20))), jobpb.BodyKind(s.rng.IntN(2))
	}
	if s.rng.IntN(4) == 0 {
		u.Backoff = &jobpb.Backoff{DelaysMs: []int64{7, 0, 200}[:s.rng.IntN(4)]}
		if s.rng.IntN(4) == 0 {
			u.Backoff.FactorPermille = 1000 // and no base: refused, also with a list
		}
	}
	if s.rng.IntN(2) == 0 {
		u.Headers = &jobpb.Headers{List: []*jobpb.Header{{Name: "a", Value: "2"}, {Name: "c", Value: "1"}, {Name: "c"}}[:s.rng.IntN(4)]}
	}
	if s.rng.IntN(5) == 0 {
		u.ExpiresMs = new(s.pick(-1, 0, 1, s.now+10, s.now+300))
	}
	return &jobpb.Op{Kind: &jobpb.Op_Update{Update: u}}
}

func (s *simulation) addOp() *jobpb.Op {
	a := &jobpb.Add{
		Topic: s.topic(), Priority: s.priority(), DelayMs: s.pick(0, 0, 1, 5, 40, 600, 5000),
		TtrMs: s.pick(1, 20, 300, 5000), MaxAttempts: uint32(s.pick(0, 1, 2, 3, 16)),
		Body: []byte(strings.Repeat("b", s.rng.IntN(20))), BodyKind: jobpb.BodyKind(s.rng.IntN(2)),
		TopicTtr: s.rng.IntN(3) == 0, TopicAttempts: s.rng.IntN(3) == 0,
	}
	switch s.rng.IntN(8) {
	case 2, 3:
		a.Options = &jobpb.JobOptions{Headers: s.jobHeaders()}
	case 0:
		a.Options = &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{5, 0, 300}[:s.rng.IntN(4)]}}
	case 1:
		a.Options = &jobpb.JobOptions{
			Backoff: &jobpb.Backoff{BaseMs: 3, FactorPermille: 2000, MaxMs: 500},
			Headers: []*jobpb.Header{{Name: "a", Value: "1"}, {Name: "b"}},
		}
	}
	if s.rng.IntN(5) == 0 {
		if a.Options == nil {
			a.Options = &jobpb.JobOptions{}
		}
		a.Options.ExpiresMs = s.pick(-1, 1, s.now, s.now+10, s.now+300, s.now+300, s.now+5000)
	}
	switch s.rng.IntN(20) {
	case 0:
		a.DueMs = s.now + s.pick(-10, 10, 300)
	case 1:
		a.DelayMs = s.pick(-1, 1_000_000_000_001)
	case 2:
		a.TtrMs = s.pick(0, -1)
	case 3:
		a.Id = "$0-1"
	case 4:
		a.Topic = ""
	}
	if a.Id == "" && s.rng.IntN(2) == 0 {
		a.Id = fmt.Sprintf("id-%d", s.rng.IntN(40))
		// Repeat the job of that id, as a producer does after a timeout.
		if old := s.model.taken(a.Id); old != nil && s.rng.IntN(2) == 0 {
			a = proto.Clone(&old.first).(*jobpb.Add)
		}
		a.IfExists = jobpb.IfExists(s.pick(0, 0, 0, 1, 2, 3))
		a.Condition = s.condition()
	}
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: a}}
}

// applyLog applies up to n entries of the log, from entry at on, and compares the results
// with the model's.
func (s *simulation) applyLog(r *rig, at, n int) int {
	for at < len(s.log) {
		end := min(at+n, len(s.log))
		from := max(at-s.rng.IntN(2), 0) // an entry applied already is skipped
		replies := s.rng.IntN(3) > 0
		results, changes, err := r.m.Apply(s.log[from:end], replies)
		require.NoError(s.t, err)
		for i := from; replies && i < end; i++ {
			got := results[i-from]
			if i < at || s.want[i] == nil {
				require.Nil(s.t, got)
				continue
			}
			require.Len(s.t, got, len(s.want[i]))
			for k, g := range got {
				requireResult(s.t, s.want[i][k], g)
			}
		}
		if end > at {
			require.Equal(s.t, s.due[end-1], changes.NextDue, "next due after entry %d", end)
		}
		for _, p := range changes.Marks {
			require.NoError(s.t, p.View.Close())
		}
		at = end
		if n < 1000 {
			break
		}
	}
	return at
}

func requireResult(t *testing.T, want, got *jobpb.Result) {
	require.Equal(t, got.Code != jobpb.Code_OK, got.Message != "", "%v", got)
	got.Message = ""
	if want.Code != jobpb.Code_OK {
		require.Equal(t, want.Code, got.Code)
		return
	}
	require.Truef(t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
}

// disturb restarts, crashes or moves a machine, and returns how many entries of the log it
// has then.
func (s *simulation) disturb(r *rig, at int) int {
	db := r.m.store.db
	switch s.rng.IntN(14) {
	case 0:
		require.NoError(s.t, db.Flush())
	case 1:
		require.NoError(s.t, db.Compact(s.t.Context(), []byte{0}, []byte{255}, false))
	case 2:
		r.reopen()
	case 3:
		reached := uint64(0)
		if at > 0 {
			reached = s.log[at-1].Index
		}
		require.NoError(s.t, r.m.MarkDurable(reached, 1, []byte("w"), 1))
	case 4:
		return s.crash(r, at)
	case 5:
		// As by an installed snapshot: the state is in another directory, and views of
		// the old one end.
		v := r.m.View()
		path := r.fs.PathJoin(rigDir, "moved")
		require.NoError(s.t, r.fs.RemoveAll(path))
		require.NoError(s.t, db.Checkpoint(path, pebble.WithFlushedWAL()))
		before := r.digest()
		require.NoError(s.t, r.m.reopen(path))
		_, err := v.Digest()
		require.ErrorIs(s.t, err, ErrViewEnded)
		require.NoError(s.t, v.Close())
		require.Equal(s.t, before, r.digest())
		r.check()
		require.NoError(s.t, moveBack(r, path))
	}
	return at
}

// moveBack makes the state in path the one that Open opens.
func moveBack(r *rig, path string) error {
	live := r.m.dir.Live()
	if err := r.fs.RemoveAll(live); err != nil {
		return err
	}
	if err := r.m.store.db.Checkpoint(live, pebble.WithFlushedWAL()); err != nil {
		return err
	}
	return r.m.reopen(live)
}

// crash reopens the machine from the files that a power failure leaves: the state at some
// earlier entry.
func (s *simulation) crash(r *rig, at int) int {
	clone := r.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: s.rng.IntN(101),
		RNG:                 s.rng,
	})
	durable := r.m.public.durable.index
	require.NoError(s.t, r.m.Close())
	r.fs, r.o.FS = clone, clone
	r.open()
	applied := r.m.Applied().Index
	require.GreaterOrEqual(s.t, applied, durable, "an index that was marked durable is durable")
	r.check()
	left := 0
	for left < at && s.log[left].Index <= applied {
		left++
	}
	return left
}

// comparePeeks compares the heads of a topic's lists with the model's.
func (s *simulation) comparePeeks(v *View, t *jobpb.Topic) {
	orders := map[jobpb.State]func(a, b *modelJob) int{
		jobpb.State_STATE_READY: func(a, b *modelJob) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq))
		},
		jobpb.State_STATE_DELAYED: func(a, b *modelJob) int {
			return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq))
		},
		jobpb.State_STATE_DEAD: func(a, b *modelJob) int { return cmp.Compare(a.deadRank, b.deadRank) },
	}
	for state, order := range orders {
		want := s.model.sorted(func(j *modelJob) bool { return j.Topic == t.Name && j.State == state }, order)
		got, found, err := v.Peek(t.Name, state)
		require.NoError(s.t, err)
		require.Equal(s.t, len(want) > 0, found, "%s in %s", state, t.Name)
		if found {
			require.Equal(s.t, want[0].Seq, got.Seq, "%s in %s", state, t.Name)
		}
	}
}

// compare compares a machine's whole state with the model's.
func (s *simulation) compare(r *rig) {
	r.check()
	require.Equal(s.t, s.model.nextDue(), r.m.NextDue())
	require.Equal(s.t, s.model.cluster, r.m.ClusterID())
	for i := range 5 {
		id := fmt.Sprintf("server-%d", i)
		require.Equal(s.t, s.model.forgotten[id], r.m.Forgotten(id))
	}
	v := r.m.View()
	defer v.Close()
	s.compareSchedules(r, v)
	jobs, topics := s.model.describe()
	for _, want := range jobs {
		got, found, err := v.Job(want.Id)
		require.NoError(s.t, err)
		require.True(s.t, found, "job %v", want)
		if len(want.Body) == 0 {
			want.Body = got.Body
		}
		require.Truef(s.t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
	}
	s.compareSettings(v)
	var all []*jobpb.Topic
	for after := ""; ; {
		page, err := v.Topics(after, 2)
		require.NoError(s.t, err)
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		after = page[len(page)-1].Name
	}
	require.Len(s.t, all, len(topics))
	s.compareTotals(v, topics)
	live := r.m.TopicChanges()
	require.Len(s.t, live, len(topics))
	for i, want := range topics {
		require.Truef(s.t, proto.Equal(want, all[i]), "want %v\ngot  %v", want, all[i])
		require.Equal(s.t, want.Name, live[i].Name)
		require.Equal(s.t, s.model.available(s.model.topics[want.Name]), live[i].Ready, "what neither a pause nor a limit holds back")
		s.comparePeeks(v, want)
	}
	s.compareListings(v)
	s.compareFound(v)
}

// compareTotals compares the totals with the sums over the model's topics.
func (s *simulation) compareTotals(v *View, topics []*jobpb.Topic) {
	want := &jobpb.Totals{Topics: uint64(len(topics))}
	for _, t := range topics {
		want.Delayed += t.Delayed
		want.Ready += t.Ready
		want.Reserved += t.Reserved
		want.Dead += t.Dead
		want.Retained += t.Retained
	}
	got, err := v.Totals()
	require.NoError(s.t, err)
	require.Truef(s.t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
}
