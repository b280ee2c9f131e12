package fsm

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/view"
	"tarry/internal/testseed"
	"tarry/job"
	"tarry/job/jobpb"
)

var (
	seedFlag  = flag.Uint64("fsm.seed", 0, "seed of the random tests; 0: a new one each run")
	roundFlag = flag.Int("fsm.rounds", 6, "runs of each random test")
	stepFlag  = flag.Int("fsm.steps", 150, "log batches in a run")
)

// eachSeed runs f several times, each with a seed that is in the subtest's name.
func eachSeed(t *testing.T, f func(t *testing.T, seed uint64)) {
	first := *seedFlag
	if first == 0 {
		first = testseed.New()
	}
	for i := range uint64(*roundFlag) {
		seed := first + i
		t.Run(fmt.Sprintf("fsm.seed=%d", seed), func(t *testing.T) { f(t, seed) })
	}
}

// Two machines with different windows apply the same log in different batches, and one of
// them is flushed, reopened, crashed and moved to another directory all the time. Now and
// then a third takes over the state of one of them and is reopened before each entry, so that
// it has nothing in memory but what the store has. Backups of a fourth replace the state. All
// must return what the model does and end with its state, and with the same digest.
func TestMachineMatchesModel(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		s.becomeGroup("cluster-0")
		troubled := s.replica("the troubled machine", Options{FS: vfs.NewCrashableMem(), MemTableBytes: 64 << 10, bounds: s.smallWindows()})
		calm := s.replica("the calm machine", Options{})
		fresh := s.replica("the fresh machine", Options{bounds: s.smallWindows()})
		leader := s.replica("the leader", Options{}) // nothing takes effect early on it
		for s.step = range *stepFlag {
			s.startTrouble()
			s.grow()
			if s.trouble.IntN(10) == 0 {
				s.applyFresh(fresh, s.replicas[s.trouble.IntN(2)])
			}
			s.applyLog(troubled, 1+s.trouble.IntN(4))
			s.applyLog(calm, 1+s.trouble.IntN(12))
			s.disturb(troubled)
			s.takeEffectEarly(s.replicas[s.trouble.IntN(3)])
			switch s.rng.IntN(40) {
			case 0:
				s.backUp(leader)
			case 1, 2:
				s.replaceState(leader)
			}
			if s.rng.IntN(10) == 0 {
				s.compareAll(troubled, calm)
			}
		}
		s.compareAll(troubled, calm)
	})
}

// compareAll brings the machines to the end of the log and compares them with the model.
func (s *simulation) compareAll(troubled, calm *replica) {
	s.applyLog(calm, 1000)
	want := calm.digest()
	for _, r := range s.replicas {
		s.applyLog(r, 1000)
		require.Equal(s.t, want, r.digest(), r.name)
	}
	s.compare(troubled.rig)
	s.compare(calm.rig)
}

// simulation makes a log of random operations, with the model's result of each.
type simulation struct {
	t    *testing.T
	seed uint64
	// rng makes the operations and nothing else, so that a seed always makes the same log.
	rng *rand.Rand
	// trouble makes what the machines go through. How much of it a crash takes depends on
	// the store's background work, so each step starts it again.
	trouble  *rand.Rand
	step     int
	model    *model
	replicas []*replica
	now      int64
	term     uint64
	log      []Entry
	want     [][]*jobpb.Result
	due      []int64                 // the model's nextDue after each entry
	ahead    []int                   // how many advances wait in the model after each entry
	digests  map[int]string          // of machines, by the number of entries
	facts    []map[string]topicFacts // the model's after each entry

	// Of Options. The digest depends on them.
	dueRecent   int
	dueGathered uint32

	// names and runs are ids of jobs and names of schedules of this shard; empty: any will do.
	names, runs []string

	sweeps []*jobpb.Progress // where sweeps ended
	backup *modelBackup      // the last; nil: none was made

	// Each seed has few or many topics and leaves out some kinds of operations, so that in
	// some runs those that are rare meet each other often.
	topics  int
	leftOut [100]bool // by the number that op draws
}

// smallWindows makes a machine read its lists again and again.
func (s *simulation) smallWindows() bounds {
	return bounds{windowCap: 2 + s.rng.IntN(12), windowBudget: 100}
}

// limitOfTopics is reached by every fourth seed.
func limitOfTopics(seed uint64) int {
	if seed%4 == 0 {
		return 2
	}
	return 9
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), model: newModel(limitOfTopics(seed)), now: rigStart, term: 1, digests: map[int]string{}}
	s.startTrouble()
	s.topics = 1 + s.rng.IntN(5)
	s.dueRecent, s.dueGathered = 1+s.rng.IntN(4), uint32(1+s.rng.IntN(20))
	percent := int(s.pick(0, 40, 80))
	for n := 50; n < 88; n += 2 { // adds, reserves and Advances are in every run
		out := s.rng.IntN(100) < percent
		s.leftOut[n], s.leftOut[n+1] = out, out
	}
	t.Cleanup(s.reportFailure)
	return s
}

// startTrouble makes the trouble of a step independent of that of the steps before.
func (s *simulation) startTrouble() {
	s.trouble = rand.New(rand.NewPCG(s.seed, uint64(s.step)+1))
}

// grow appends a few entries to the log.
func (s *simulation) grow() {
	for range 1 + s.rng.IntN(5) {
		s.now += s.pick(0, 0, 1, 3, 10, 40, 500)
		if s.rng.IntN(60) == 0 {
			s.now += 3_700_000
		}
		if s.rng.IntN(15) == 0 {
			s.term++
		}
		now := s.now - s.pick(0, 0, 0, 20) // leaders' clocks differ
		if s.rng.IntN(15) == 0 {
			s.configure()
			continue
		}
		epoch := s.model.reset.epoch
		if epoch > 0 && s.rng.IntN(10) == 0 {
			epoch, now = epoch-1, now+s.pick(0, 700, 4_000_000) // it was under way when the clock was set back
		}
		s.entry(now, epoch, func(yield func(*jobpb.Op) bool) {
			for range s.rng.IntN(8) {
				if !yield(s.op()) {
					return
				}
			}
		})
		if s.model.reset.epoch != epoch {
			s.now = s.model.clock // leaders go by the clock that was set back
		}
	}
}

// configure appends a configuration of Raft to the log.
func (s *simulation) configure() {
	index := uint64(len(s.log)+1) + 5
	s.log = append(s.log, Entry{Index: index, Term: s.term, Data: []byte{byte(index)}, Configuration: true})
	s.want = append(s.want, nil)
	s.remember()
}

// entry appends an entry to the log. The model applies each operation before the next is
// made.
func (s *simulation) entry(now int64, epoch uint64, all iter.Seq[*jobpb.Op]) {
	var ops []*jobpb.Op
	want := []*jobpb.Result{}
	rounded := s.rng.IntN(2) == 0
	s.model.startEntry(now, rounded, epoch, s.term)
	for op := range all {
		ops = append(ops, op)
		s.model.alone = len(ops) == 1
		want = append(want, proto.Clone(s.model.apply(op)).(*jobpb.Result))
		s.keepSweep(want[len(want)-1])
		if s.model.alone && op.GetReplaceState() != nil {
			break
		}
	}
	s.log = append(s.log, Entry{Index: uint64(len(s.log)+1) + 5, Term: s.term, Data: encodeEntryOf(s.t, now, rounded, epoch, ops...)})
	s.want = append(s.want, want)
	s.remember()
}

// remember keeps what the model shows after the last entry.
func (s *simulation) remember() {
	s.facts = append(s.facts, s.model.facts())
	s.due = append(s.due, s.model.nextDue())
	s.ahead = append(s.ahead, len(s.model.ahead))
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
	return string(rune('a' + s.rng.IntN(s.topics)))
}

// ref names a job, mostly one that existed at some time.
func (s *simulation) ref() *jobpb.Ref {
	ref := &jobpb.Ref{Seq: s.someSeq()}
	j := s.model.jobs[ref.Seq]
	switch s.rng.IntN(8) {
	case 0:
		ref = &jobpb.Ref{Id: s.jobID(40)}
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

// heldRef is ref, but mostly names a reserved job.
func (s *simulation) heldRef() *jobpb.Ref {
	held := s.model.sorted(func(j *modelJob) bool { return j.State == jobpb.State_STATE_RESERVED }, comparePlaced)
	if len(held) == 0 || s.rng.IntN(3) == 0 {
		return s.ref()
	}
	j := held[s.rng.IntN(len(held))]
	return &jobpb.Ref{Seq: j.Seq, Generation: uint32(s.pick(0, int64(j.generation)))}
}

func (s *simulation) op() *jobpb.Op {
	if s.rng.IntN(12) == 0 {
		return s.scheduleOp()
	}
	if names := slices.Sorted(maps.Keys(modelOps)); s.rng.IntN(40) < len(names) {
		return modelOps[names[s.rng.IntN(len(names))]].some(s)
	}
	reason := deadReasons[s.rng.IntN(len(deadReasons))]
	n := s.rng.IntN(100)
	for s.leftOut[n] {
		n = s.rng.IntN(100)
	}
	switch {
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
			HoldMs: s.pick(0, 0, 0, 0, 0, 5, 1000, 1001, -1),
		}}}
	case n < 57:
		return opFinish(s.heldRef())
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
			Ref: s.heldRef(), DelayMs: s.pick(0, 0, 1, 30, 2000, 30_000, 30_000, -1, 1_000_000_000_001),
			SetPriority: s.rng.IntN(3) == 0, Priority: s.priority(), Reason: reason,
			Undelivered: s.rng.IntN(4) == 0, Returned: s.rng.IntN(4) == 0, ReservedMs: s.now - s.pick(-5, 0, 1, 10, 100, 5000),
			Backoff: s.rng.IntN(2) == 0, Entropy: s.rng.Uint64(),
		})
	case n < 74:
		return opTouch(s.heldRef(), s.pick(0, 1, 50, 1000))
	case n < 80:
		return opBury(&jobpb.Bury{Ref: s.heldRef(), SetPriority: s.rng.IntN(3) == 0, Priority: s.priority(), Reason: reason})
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
		return opRaise(job.FirstVersion + 1 + s.rng.Uint32N(job.MaxVersion-job.FirstVersion)) // by more than one it is refused
	case n < 99:
		return s.clusterOp()
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
	if s.rng.IntN(5) == 0 {
		u.PushUrl = new(s.pushURL())
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
		a.Options = &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{s.pick(5, 30_000), 0, 300}[:s.rng.IntN(4)]}}
	case 1:
		a.Options = &jobpb.JobOptions{
			Backoff: &jobpb.Backoff{BaseMs: 3, FactorPermille: 2000, MaxMs: 500},
			Headers: []*jobpb.Header{{Name: "a", Value: "1"}, {Name: "b"}},
		}
	}
	if s.rng.IntN(4) == 0 {
		if a.Options == nil {
			a.Options = &jobpb.JobOptions{}
		}
		a.Options.ExpiresMs = s.pick(-1, 1, s.now, s.now+10, s.now+300, s.now+5000, s.now+5000, s.now+20_000)
	}
	if url := s.pushURL(); url != "" {
		if a.Options == nil {
			a.Options = &jobpb.JobOptions{}
		}
		a.Options.PushUrl = url
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
		a.Id = s.jobID(40)
		// Repeat the job of that id, as a producer does after a timeout.
		if old := s.model.taken(a.Id); old != nil && s.rng.IntN(2) == 0 {
			a = proto.Clone(&old.first).(*jobpb.Add)
		}
		a.IfExists = jobpb.IfExists(s.pick(0, 0, 0, 1, 2, 3, 4))
		a.Condition = s.condition()
	}
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: a}}
}

// comparePeeks compares the heads of a topic's lists with the model's.
func (s *simulation) comparePeeks(v *view.View, t *jobpb.Topic) {
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
	require.Equal(s.t, max(s.model.shards, 1), r.m.Shards())
	require.Equal(s.t, s.model.group, r.m.Group())
	for i := range 5 {
		id := fmt.Sprintf("server-%d", i)
		require.Equal(s.t, s.model.forgotten[id], r.m.Forgotten(id))
	}
	require.ElementsMatch(s.t, slices.Collect(maps.Keys(s.model.removed)), slices.Collect(maps.Keys(r.m.RemovedNodes())))
	require.True(s.t, proto.Equal(s.model.admission, r.m.Admission()), "want %v\ngot  %v", s.model.admission, r.m.Admission())
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
		s.compareByID(v, got)
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
	s.compareForecasts(v)
	s.compareDead(v)
}

// compareByID compares what a list of ids gives with a job.
func (s *simulation) compareByID(v *view.View, want *jobpb.Job) {
	got, err := v.JobsByID(&jobpb.JobsByID{Ids: []string{"nobody", want.Id}, Body: true})
	require.NoError(s.t, err)
	require.Len(s.t, got, 2)
	require.True(s.t, proto.Equal(&jobpb.Job{}, got[0]))
	got[1].History, got[1].HistoryDropped = want.History, want.HistoryDropped
	require.Truef(s.t, proto.Equal(want, got[1]), "want %v\ngot  %v", want, got[1])
}

// compareTotals compares the totals with the sums over the model's topics.
func (s *simulation) compareTotals(v *view.View, topics []*jobpb.Topic) {
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
