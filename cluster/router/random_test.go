package router

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/internal/testseed"
	"tarry/job"
	"tarry/job/jobpb"
)

// A router over state machines and one state machine get the same random calls. What they answer is
// the same, except for what docs/shards.md names: the numbers, the order of jobs of different shards, and so
// which of several ready jobs a reserve gets. So the ids are those of the caller, and the one state machine
// reserves the jobs that the router got. A move of a whole topic is not among the calls: where the other topic
// is empty, it changes no job, and so no revision.

// pair is the two.
type pair struct {
	r      *rig
	one    *group
	random *rand.Rand
	ids    []string
	held   map[string]held // the last reservation of each job, by id
}

// held is a reservation, and the number that the one state machine gave the job.
type held struct {
	*jobpb.Reserved
	one uint64
}

var topics = []string{"a", "b", "c"}

func newPair(t *testing.T, shards int, seed uint64) *pair {
	r := newRig(t, shards)
	p := &pair{
		r: r, one: newGroup(t, 1, 1, &r.clock), random: rand.New(rand.NewPCG(seed, 1)),
		held: map[string]held{},
	}
	for i := range 12 {
		p.ids = append(p.ids, fmt.Sprint("job-", i), fmt.Sprintf("{tag-%d}-%d", i%4, i))
	}
	p.ids = append(p.ids, "nightly@2026-11-30T00:00:00Z", "nightly@2026-12-01T00:00:00Z", "nightly@now-k")
	return p
}

func (p *pair) id() string    { return p.ids[p.random.IntN(len(p.ids))] }
func (p *pair) topic() string { return topics[p.random.IntN(len(topics))] }

// refs returns how the router and the one state machine name a job.
func (p *pair) refs(id string) (at, one *jobpb.Ref) {
	h, has := p.held[id]
	switch {
	case !has || p.random.IntN(3) == 0:
		return ref(id), ref(id)
	case p.random.IntN(2) == 0:
		return &jobpb.Ref{Id: id, Seq: h.Seq, Generation: h.Generation}, &jobpb.Ref{Id: id, Seq: h.one, Generation: h.Generation}
	}
	return &jobpb.Ref{Seq: h.Seq, Generation: h.Generation}, &jobpb.Ref{Seq: h.one, Generation: h.Generation}
}

// op returns a random operation, as the router and the one state machine get it.
func (p *pair) op() (at, one *jobpb.Op) {
	id := p.id()
	sweep := &jobpb.Sweep{Scan: 1000}
	shared := func(op *jobpb.Op) (*jobpb.Op, *jobpb.Op) { return op, proto.CloneOf(op) }
	byRef := func(make func(*jobpb.Ref) *jobpb.Op) (*jobpb.Op, *jobpb.Op) {
		at, one := p.refs(id)
		return make(at), make(one)
	}
	switch p.random.IntN(17) {
	case 0, 1, 2, 3:
		op := add(id, p.topic())
		op.GetAdd().IfExists = jobpb.IfExists(p.random.IntN(4))
		op.GetAdd().Priority, op.GetAdd().DelayMs = uint32(p.random.IntN(3)), int64(p.random.IntN(2)*p.random.IntN(200_000))
		op.GetAdd().MaxAttempts = uint32(p.random.IntN(4))
		return shared(op)
	case 4:
		return shared(&jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{Adds: []*jobpb.Add{add(id, p.topic()).GetAdd(), add(id+"-then", p.topic()).GetAdd()}}}})
	case 5, 6:
		return byRef(finish)
	case 7:
		return byRef(func(r *jobpb.Ref) *jobpb.Op {
			return &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: r, DelayMs: 5}}}
		})
	case 8, 9:
		return byRef(func(r *jobpb.Ref) *jobpb.Op {
			return &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: r, Reason: "r" + id[len(id)-1:]}}}
		})
	case 10:
		return byRef(func(r *jobpb.Ref) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: r}}} })
	case 11:
		return byRef(func(r *jobpb.Ref) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: r}}} })
	case 12:
		to := p.topic()
		return byRef(func(r *jobpb.Ref) *jobpb.Op {
			return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: r, To: to}}}
		})
	case 13:
		pause := &jobpb.PauseTopic{Topic: p.topic(), Create: p.random.IntN(2) == 0, PauseMs: int64(p.random.IntN(2) * 50)}
		return shared(&jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: pause}})
	case 14:
		state := []jobpb.State{jobpb.State_STATE_DELAYED, jobpb.State_STATE_READY, jobpb.State_STATE_DEAD}[p.random.IntN(3)]
		purge := &jobpb.Purge{Topic: p.topic(), State: state, Max: 1000, Sweep: sweep}
		purge.Sweep.Filter = &jobpb.Filter{IdPrefix: "job-"}
		return shared(&jobpb.Op{Kind: &jobpb.Op_Purge{Purge: purge}})
	case 15:
		return shared(&jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: p.topic(), Max: 1000, OrDelayed: p.random.IntN(4) == 0}}})
	default:
		settings := &jobpb.TopicSettings{RetainMs: int64(p.random.IntN(2) * 100_000), Description: fmt.Sprint(p.random.IntN(3))}
		return shared(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: p.topic(), Settings: settings}}})
	}
}

// step makes one random call of both, and returns what differs.
func (p *pair) step(q *Queue) error {
	p.r.clock += int64(p.random.IntN(100))
	ctx := context.Background()
	if p.random.IntN(4) == 0 {
		return p.reserve(ctx, q)
	}
	var at, one []*jobpb.Op
	for range 1 + p.random.IntN(3) {
		a, b := p.op()
		if a.GetSetTopic() != nil { // in a batch it has no order with what shards do
			at, one = []*jobpb.Op{a}, []*jobpb.Op{b}
			break
		}
		at, one = append(at, a), append(one, b)
	}
	results, err := q.Do(ctx, at)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Code == jobpb.Code_CROSS_SLOT {
			if adds := at[i].GetAtomicAdd().GetAdds(); len(adds) == 0 || slotOf(adds[0].Id) == slotOf(adds[1].Id) {
				return fmt.Errorf("%v is refused with cross_slot", at[i])
			}
			continue
		}
		want, err := p.one.Do(ctx, one[i:i+1])
		if err != nil {
			return err
		}
		if a, b := shown(result), shown(want[0]); !proto.Equal(a, b) {
			return fmt.Errorf("%v gave\n%v, and with one shard\n%v", at[i], a, b)
		}
	}
	return nil
}

// shown is what the two have in common of a result: not the numbers.
func shown(r *jobpb.Result) *jobpb.Result {
	r = proto.CloneOf(r)
	r.Seq = 0
	if r.Code != jobpb.Code_OK {
		r.Message = "" // it may have a number
	}
	for i, part := range r.GetDetails().GetParts() {
		r.Details.Parts[i] = shown(part)
	}
	return r
}

func (p *pair) reserve(ctx context.Context, q *Queue) error {
	request := &jobpb.Reserve{Topics: []string{p.topic(), p.topic()}, Max: uint32(1 + p.random.IntN(4))}
	if request.Topics[0] == request.Topics[1] {
		request.Topics = request.Topics[:1]
	}
	jobs, err := q.Reserve(ctx, request, 0)
	if err != nil {
		return err
	}
	ready := uint64(0)
	for _, name := range request.Topics {
		a, err := p.one.Read(ctx, &jobpb.Read{What: &jobpb.Read_Topic{Topic: name}}, false)
		if err != nil {
			return err
		}
		if a.Topic.PausedUntilMs == 0 {
			ready += a.Topic.Ready
		}
	}
	if uint64(len(jobs)) != min(ready, uint64(request.Max)) {
		return fmt.Errorf("%d jobs were reserved of at most %d; %d are ready", len(jobs), request.Max, ready)
	}
	for _, j := range jobs {
		results, err := p.one.Do(ctx, []*jobpb.Op{{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: ref(j.Id)}}}})
		if err != nil {
			return err
		}
		if len(results[0].Jobs) != 1 {
			return fmt.Errorf("%s was reserved, and with one shard it cannot be: %v", j.Id, results[0])
		}
		want := proto.CloneOf(results[0].Jobs[0])
		number := want.Seq
		want.Seq = j.Seq
		if !proto.Equal(want, j) {
			return fmt.Errorf("reserved\n%v, and with one shard\n%v", j, want)
		}
		p.held[j.Id] = held{j, number}
	}
	return nil
}

// compare reads everything of both, and returns what differs.
func (p *pair) compare(q *Queue) error {
	ctx := context.Background()
	one := job.Reads{Reader: p.one}
	for _, id := range slices.Concat(p.ids, []string{"nobody"}) {
		a, errA := q.Job(ctx, id, false)
		b, errB := one.Job(ctx, id, false)
		if job.CodeOf(errA) != job.CodeOf(errB) || !proto.Equal(jobShown(a), jobShown(b)) {
			return fmt.Errorf("job %s is\n%v %v, and with one shard\n%v %v", id, a, errA, b, errB)
		}
	}
	a, err := q.JobsByID(ctx, p.ids, true, false)
	if err != nil {
		return err
	}
	b, err := one.JobsByID(ctx, p.ids, true, false)
	if err != nil || len(a) != len(b) {
		return fmt.Errorf("%d jobs by id, and with one shard %d: %w", len(a), len(b), err)
	}
	for i := range a {
		if !proto.Equal(jobShown(a[i]), jobShown(b[i])) {
			return fmt.Errorf("by id\n%v, and with one shard\n%v", a[i], b[i])
		}
	}
	if err := p.compareLists(ctx, q, one); err != nil {
		return err
	}
	for _, read := range []*jobpb.Read{
		{What: &jobpb.Read_Topics{Topics: &jobpb.Page{Max: 2}}}, {What: &jobpb.Read_Topics{Topics: &jobpb.Page{Max: 10}}},
		{What: &jobpb.Read_ConfiguredTopics{ConfiguredTopics: &jobpb.Page{Max: 10}}},
		{What: &jobpb.Read_Topic{Topic: "a"}},
		{What: &jobpb.Read_Forecast{Forecast: &jobpb.ForecastQuery{FromMs: p.r.clock / 60_000 * 60_000, StepMs: 60_000, Steps: 5, NowMs: p.r.clock}}},
		{What: &jobpb.Read_DueTopics{DueTopics: &jobpb.DueTopicsQuery{FromMs: p.r.clock / 60_000 * 60_000, UntilMs: p.r.clock/60_000*60_000 + 300_000, Max: 10}}},
		{What: &jobpb.Read_DeadReasons{DeadReasons: &jobpb.DeadReasonsQuery{Topic: "b", Max: 10}}},
	} {
		a, errA := q.Read(ctx, proto.CloneOf(read), false)
		b, errB := p.one.Read(ctx, proto.CloneOf(read), false)
		a, b = inCommon(a), inCommon(b)
		if errA != nil || errB != nil || !proto.Equal(a, b) {
			return fmt.Errorf("%v gave\n%v %v, and with one shard\n%v %v", read, a, errA, b, errB)
		}
	}
	return p.residence()
}

// inCommon is what the two have in common of a reply: not the revisions, which are numbers too, nor in
// which of a topic's dead jobs that died at one instant is the first, nor the order of what counts the same.
func inCommon(a *jobpb.ReadResult) *jobpb.ReadResult {
	for _, t := range append(slices.Clone(a.GetTopics()), a.GetTopic()) {
		if t != nil {
			t.Pauses = 0 // of a topic that shards drop at different times
			if t.Settings != nil {
				t.Settings.Revision = 0
			}
		}
	}
	for _, g := range a.GetDeadReasons().GetGroups() {
		g.FirstId = ""
	}
	slices.SortFunc(a.GetDueTopics().GetTopics(), func(a, b *jobpb.DueTopic) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Topic, b.Topic))
	})
	return a
}

func jobShown(j *jobpb.Job) *jobpb.Job {
	if j == nil {
		return nil
	}
	j = proto.CloneOf(j)
	j.Seq = 0
	return j
}

// compareLists lists each topic by pages of a random size.
func (p *pair) compareLists(ctx context.Context, q *Queue, one job.Reads) error {
	all := func(from job.Reads, query *jobpb.JobQuery) (jobs []*jobpb.Job, err error) {
		for {
			page, err := from.Jobs(ctx, query, false)
			if err != nil {
				return nil, err
			}
			for _, j := range page.Jobs {
				jobs = append(jobs, jobShown(j))
			}
			if query.After = page.Next; page.Next == nil {
				break
			}
		}
		slices.SortFunc(jobs, func(a, b *jobpb.Job) int { return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Id, b.Id)) })
		return jobs, nil
	}
	queries := []*jobpb.JobQuery{{Filter: &jobpb.Filter{IdPrefix: "{tag-"}}}
	for _, topic := range topics {
		queries = append(queries, &jobpb.JobQuery{Topic: topic}, &jobpb.JobQuery{Topic: topic, State: jobpb.State(1 + p.random.IntN(6))})
	}
	for _, query := range queries {
		query.Max = uint32(1 + p.random.IntN(8))
		a, err := all(q.Reads, proto.CloneOf(query))
		if err != nil {
			return err
		}
		b, err := all(one, proto.CloneOf(query))
		if err != nil {
			return err
		}
		if !slices.EqualFunc(a, b, func(a, b *jobpb.Job) bool { return proto.Equal(a, b) }) {
			return fmt.Errorf("%v lists\n%v, and with one shard\n%v", query, a, b)
		}
	}
	return nil
}

// slotOf computes a slot without package slot.
func slotOf(id string) uint32 {
	basis := id
	if i := strings.IndexByte(id, '{'); i >= 0 {
		if n := strings.IndexByte(id[i+1:], '}'); n > 0 {
			basis = id[i+1 : i+1+n]
		}
	} else if schedule, _, run := strings.Cut(id, "@"); run {
		basis = schedule
	}
	return crc32.ChecksumIEEE([]byte(basis)) & 4095
}

// residence returns an error if a shard has a job of another: clients that compute the shard would
// not find it.
func (p *pair) residence() error {
	for s, g := range p.r.shards {
		for _, topic := range topics {
			a, err := g.Read(context.Background(), &jobpb.Read{What: &jobpb.Read_Jobs{Jobs: &jobpb.JobQuery{Topic: topic, Max: 1000}}}, false)
			if err != nil {
				return err
			}
			for _, j := range a.Jobs.Jobs {
				if slotOf(j.Id)%uint32(len(p.r.shards)) != uint32(s) {
					return fmt.Errorf("job %s is in shard %d", j.Id, s)
				}
			}
		}
	}
	return nil
}

// run makes random calls of both, and returns the first difference.
func (p *pair) run(q *Queue, calls int) error {
	for i := range calls {
		err := p.step(q)
		if err == nil && i%10 == 0 {
			err = p.compare(q)
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return p.compare(q)
}

func TestARouterAnswersAsOneStateMachineDoes(t *testing.T) {
	for _, shards := range []int{1, 2, 4, 16} {
		t.Run(fmt.Sprint("shards=", shards), func(t *testing.T) {
			testseed.Each(t, func(t *testing.T, seed uint64) {
				p := newPair(t, shards, seed)
				require.NoError(t, p.run(p.r.Queue, 100))
			})
		})
	}
}

// misrouted sends some operations and reads of a shard to another one.
type misrouted struct {
	*group
	op   func(*jobpb.Op) bool
	read func(*jobpb.Read) bool
	to   *group
}

func (m misrouted) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	if m.op != nil && slices.ContainsFunc(ops, m.op) {
		return m.to.Do(ctx, ops)
	}
	return m.group.Do(ctx, ops)
}

func (m misrouted) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	if m.read != nil && m.read(r) {
		return m.to.Read(ctx, r, stale)
	}
	return m.group.Read(ctx, r, stale)
}

func TestARouterThatSendsSomethingToAWrongShardIsFound(t *testing.T) {
	tagged := func(op *jobpb.Op) bool { return strings.HasPrefix(op.GetAdd().GetId(), "{") }
	for name, m := range map[string]misrouted{
		"tagged ids":     {op: tagged, read: func(r *jobpb.Read) bool { return strings.HasPrefix(r.GetJob(), "{") }},
		"runs":           {op: func(op *jobpb.Op) bool { return strings.HasPrefix(op.GetAdd().GetId(), "nightly@") }},
		"reads by id":    {read: func(r *jobpb.Read) bool { return r.GetJob() != "" }},
		"reads of ids":   {read: func(r *jobpb.Read) bool { return r.GetJobsById() != nil }},
		"finishes":       {op: func(op *jobpb.Op) bool { return op.GetFinish() != nil }},
		"tokens":         {op: func(op *jobpb.Op) bool { return op.GetBury().GetRef().GetSeq() != 0 }},
		"purges":         {op: func(op *jobpb.Op) bool { return op.GetPurge() != nil }},
		"counts":         {read: func(r *jobpb.Read) bool { return r.GetTopic() != "" }},
		"pauses":         {op: func(op *jobpb.Op) bool { return op.GetPauseTopic() != nil }},
		"pages of lists": {read: func(r *jobpb.Read) bool { return r.GetJobs() != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				p := newPair(t, 4, seed)
				groups := make([]Group, 4)
				for s, g := range p.r.shards {
					groups[s] = g
				}
				m.group, m.to = p.r.shards[2], p.r.shards[1]
				groups[2] = m
				if err := p.run(New(p.r.config, groups), 100); err != nil {
					return
				}
			}
			require.Fail(t, "it was not found")
		})
	}
}
