package cluster

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

func encoded(t testing.TB, ms ...proto.Message) []byte {
	var b []byte
	for _, m := range ms {
		one, err := proto.Marshal(m)
		require.NoError(t, err)
		b = append(binary.AppendUvarint(b, uint64(len(one))), one...)
	}
	return b
}

// bare is one message in its encoded form.
func bare(t testing.TB, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	require.NoError(t, err)
	return b
}

// pieces splits what encoded has joined; a last piece that is cut short is whole
// as far as it goes.
func pieces(b []byte) (out [][]byte) {
	for len(b) > 0 {
		n, w := binary.Uvarint(b)
		if w <= 0 {
			return out
		}
		b = b[w:]
		n = min(n, uint64(len(b)))
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

func runOf(t testing.TB, ops ...*jobpb.Op) (run []byte) {
	var err error
	for _, op := range ops {
		run, err = job.AppendOp(run, op)
		require.NoError(t, err)
	}
	return run
}

// followerService is the service of a node that does not lead.
func followerService(t testing.TB) *service {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	s := &Shard{leaders: newLeaderWatch(time.Time{}), machine: m}
	s.cfg.ServerID = "n1.1"
	return &service{shard: func(uint32) *Shard { return s }}
}

// proposeTo calls Propose. Whether the operations are fit for the log is looked at
// before who leads is.
func proposeTo(v *service, count uint32, run []byte) error {
	_, err := v.Propose(context.Background(), &noderpc.ProposeRequest{Count: count, Ops: run})
	return err
}

func TestProposeRefusesWhatNoNodeCouldApply(t *testing.T) {
	good := runOf(t, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "a"}}}})
	v := followerService(t)
	require.NoError(t, proposeTo(v, 1, good))
	for name, c := range map[string]struct {
		count uint32
		run   []byte
	}{
		"another count":               {2, good},
		"cut short":                   {1, good[:len(good)-1]},
		"the queue's time":            {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1}}})},
		"a planned run":               {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "s"}}})},
		"another cluster's id":        {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "c"}}})},
		"a removal":                   {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: "n1.a"}}})},
		"operation of a next release": {1, []byte{18, 3, 0xa2, 0x1f, 0}},
		"operation that is damaged":   {1, []byte{18, 2, 0x0a, 0x7f}},
		"field of a next release":     {1, []byte{18, 5, 0x32, 3, 0xa0, 6, 1}}, // 100 of Touch
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, codes.InvalidArgument, status.Code(proposeTo(v, c.count, c.run)))
		})
	}
}

// Whatever a peer proposes is refused, or is an entry that all nodes can read.
func FuzzPropose(f *testing.F) {
	f.Add(uint32(1), runOf(f, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "a"}}}}))
	f.Add(uint32(1), []byte{18, 3, 0xa2, 0x1f, 0})
	f.Add(uint32(0), []byte{})
	v := followerService(f)
	f.Fuzz(func(t *testing.T, count uint32, run []byte) {
		err := proposeTo(v, count, run)
		e, derr := job.DecodeEntry(append(job.AppendEntryHeader(nil, 1), run...))
		if err != nil {
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			return
		}
		require.NoError(t, derr)
		require.Len(t, e.Ops, int(count))
	})
}

// sentBy is a stream of waits whose peer sends a fixed list of messages.
type sentBy struct {
	grpc.ServerStream
	messages [][]byte

	mu      sync.Mutex
	answers map[uint64]int
}

func (s *sentBy) Context() context.Context { return context.Background() }

func (s *sentBy) Recv() (*noderpc.WaitRequest, error) {
	for len(s.messages) > 0 {
		m := new(noderpc.WaitRequest)
		err := proto.Unmarshal(s.messages[0], m)
		s.messages = s.messages[1:]
		if err == nil { // gRPC refuses the others before they come here
			return m, nil
		}
	}
	return nil, io.EOF
}

func (s *sentBy) Send(a *noderpc.WaitAnswer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[a.Waiter]++
	return nil
}

// serveSent serves a stream on a leader whose topic "t" has ready jobs. It returns
// why the stream ended.
func serveSent(t testing.TB, messages [][]byte) error {
	submitted := 0
	// The state machine refuses a Reserve that is out of bounds.
	submit := func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
		submitted++
		if submitted > 1000 {
			panic("a reserve is tried for ever")
		}
		rs := make([]*jobpb.Result, len(ops))
		for i, op := range ops {
			rs[i] = &jobpb.Result{}
			if r := op.GetReserve(); job.CheckReserve(r) == nil && slices.Contains(r.Topics, "t") {
				rs[i].Jobs = []*jobpb.Reserved{{Seq: 1, Generation: 1}}
			}
		}
		done(rs, nil)
	}
	d := dispatch.New(submit, 8, nil)
	defer d.Stop()
	d.Update([]dispatch.Update{{Topic: "t", Ready: 3}})
	stream := &sentBy{messages: messages, answers: map[uint64]int{}}
	err := serveWaiters(stream, d, func([]*jobpb.Reserved) {})
	require.Zero(t, d.Waiting(), "the end of a stream withdraws its waiters")
	return err
}

func waitFor(t testing.TB, waiter uint64, r *jobpb.Reserve) *noderpc.WaitRequest {
	b, err := r.MarshalVT()
	require.NoError(t, err)
	return &noderpc.WaitRequest{Waiter: waiter, Reserve: b}
}

func TestWaitEndsTheStreamOfAPeerThatBreaksTheRules(t *testing.T) {
	good := &jobpb.Reserve{Topics: []string{"u"}, Max: 1}
	require.ErrorIs(t, serveSent(t, pieces(encoded(t, waitFor(t, 1, good), waitFor(t, 2, good)))), io.EOF)
	for name, second := range map[string]*noderpc.WaitRequest{
		"a number that waits already": waitFor(t, 1, good),
		"no topic":                    waitFor(t, 2, &jobpb.Reserve{Max: 1}),
		"no job asked for":            waitFor(t, 2, &jobpb.Reserve{Topics: []string{"t"}}),
		"a TTR out of range":          waitFor(t, 2, &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: -1}),
		"no reserve":                  {Waiter: 2, Reserve: []byte{0xff}},
	} {
		t.Run(name, func(t *testing.T) {
			err := serveSent(t, pieces(encoded(t, waitFor(t, 1, good), second)))
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		})
	}
}

// Whatever a peer sends on its stream, no waiter outlives the stream and no
// reserve is tried for ever.
func FuzzWaitRequests(f *testing.F) {
	wait := waitFor(f, 1, &jobpb.Reserve{Topics: []string{"u"}, Max: 1})
	f.Add(encoded(f, wait, &noderpc.WaitRequest{Waiter: 1, Keep: true}, waitFor(f, 2, &jobpb.Reserve{Topics: []string{"t", "u"}, Max: 2})))
	f.Add(encoded(f, wait, wait))
	f.Add(encoded(f, waitFor(f, 1, &jobpb.Reserve{Topics: []string{"t"}})))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := serveSent(t, pieces(data))
		if err != io.EOF {
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		}
	})
}

// Whatever the leader answers, a waiter ends once.
func FuzzWaitAnswers(f *testing.F) {
	jobs, err := (&jobpb.Result{Jobs: []*jobpb.Reserved{{Seq: 1}}}).MarshalVT()
	require.NoError(f, err)
	f.Add(encoded(f, &noderpc.WaitAnswer{Waiter: 1, Result: jobs}, &noderpc.WaitAnswer{Waiter: 2, Result: []byte{0xff}}, &noderpc.WaitAnswer{Waiter: 2}))
	f.Add(encoded(f, &noderpc.WaitAnswer{Waiter: 3, Result: jobs}, &noderpc.WaitAnswer{Waiter: 1, Refusal: 77}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newWaitStream(nil, 0, func([]*jobpb.Reserved) {})
		s.begin()
		ends := make([]int, 3)
		for i := range ends {
			w := &dispatch.Waiter{Reserve: &jobpb.Reserve{}, Done: func([]*jobpb.Reserved, error) { ends[i]++ }}
			s.Add(w)
			if i == 2 {
				s.Withdraw(w, false)
			}
		}
		for _, p := range pieces(data) {
			a := new(noderpc.WaitAnswer)
			if proto.Unmarshal(p, a) == nil {
				_ = s.answer(a) // an error would end the stream
			}
		}
		s.fail()
		require.Equal(t, []int{1, 1, 1}, ends)
	})
}

// A read that a peer asks for is answered or refused, and what is answered comes
// out at the peer as it was.
func FuzzReads(f *testing.F) {
	for _, r := range []*noderpc.ReadRequest{
		{}, {What: &noderpc.ReadRequest_Job{Job: "a"}}, {What: &noderpc.ReadRequest_Job{Job: "$0-1"}},
		{What: &noderpc.ReadRequest_JobSeq{JobSeq: 1}}, {What: &noderpc.ReadRequest_Topic{Topic: "t"}},
		{What: &noderpc.ReadRequest_Topics{Topics: &noderpc.TopicPage{Max: 1 << 31}}},
		{What: &noderpc.ReadRequest_Topics{Topics: &noderpc.TopicPage{Max: 1 << 31, Configured: true}}},
		{What: &noderpc.ReadRequest_Totals{Totals: true}},
		{What: &noderpc.ReadRequest_Peek{Peek: &noderpc.Peek{Topic: "t", State: 1<<32 - 1}}},
		{What: &noderpc.ReadRequest_Jobs{Jobs: bare(f, &jobpb.JobQuery{Topic: "t", Max: 2})}},
		{What: &noderpc.ReadRequest_Jobs{Jobs: bare(f, &jobpb.JobQuery{Filter: &jobpb.Filter{IdPrefix: "a"}, Max: 1000, After: &jobpb.JobMark{Id: "b"}})}},
		{What: &noderpc.ReadRequest_Jobs{Jobs: []byte{0xff}}},
		{What: &noderpc.ReadRequest_Schedule{Schedule: "s"}}, {What: &noderpc.ReadRequest_Schedules{Schedules: &noderpc.TopicPage{Max: 1 << 31}}},
	} {
		b, err := proto.Marshal(r)
		require.NoError(f, err)
		f.Add(b)
	}
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, m.Close()) })
	add := &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "a", Topic: "t", Body: []byte("b"), TtrMs: 1}}}
	_, _, err = m.Apply([]fsm.Entry{{Index: 1, Term: 1, Data: append(job.AppendEntryHeader(nil, 1), runOf(f, add, putEvery("s", "@daily", nil))...)}}, true)
	require.NoError(f, err)
	s := &Shard{machine: m}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(noderpc.ReadRequest)
		if proto.Unmarshal(data, r) != nil {
			return
		}
		a, err := s.look(r)
		if err != nil {
			return
		}
		resp, err := encodeAnswer(a)
		require.NoError(t, err)
		got, err := decodeAnswer(resp)
		require.NoError(t, err)
		require.True(t, proto.Equal(a.job, got.job))
		require.Len(t, got.topics, len(a.topics))
		require.Len(t, got.schedules, len(a.schedules))
		require.Len(t, got.page.GetJobs(), len(a.page.GetJobs()))
		require.True(t, proto.Equal(a.page.GetNext(), got.page.GetNext()))
	})
}

// An answer to a read is understood or refused.
func FuzzReadAnswers(f *testing.F) {
	resp, err := encodeAnswer(answer{job: &jobpb.Job{Id: "a"}, topics: []*jobpb.Topic{{Name: "t"}}, schedules: []*jobpb.ScheduleInfo{{Name: "s"}}})
	require.NoError(f, err)
	b, err := proto.Marshal(resp)
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(noderpc.ReadResponse)
		if proto.Unmarshal(data, r) != nil {
			return
		}
		a, err := decodeAnswer(r)
		if err != nil {
			require.Equal(t, job.CodeInternal, job.CodeOf(err))
			require.Zero(t, a)
			return
		}
		require.Equal(t, len(r.Job) > 0, a.job != nil)
		require.Len(t, a.topics, len(r.Topics))
		require.Len(t, a.schedules, len(r.Schedules))
	})
}
