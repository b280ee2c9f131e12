package waits

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
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

// pieces splits what encoded has joined. The last piece may be truncated.
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

// sentBy is a stream whose peer sends a fixed list of messages.
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
		if err == nil { // gRPC rejects the others
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

// serveSent serves a stream on a leader whose topic "t" has ready jobs. It returns the error
// that ended the stream.
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
			if r := op.GetReserve(); oplog.CheckReserve(job.Newest(), r) == nil && slices.Contains(r.Topics, "t") {
				rs[i].Jobs = []*jobpb.Reserved{{Seq: 1, Generation: 1}}
			}
		}
		done(rs, nil)
	}
	d := dispatch.New(submit, 8, nil)
	defer d.Stop()
	d.Update([]dispatch.Update{{Topic: "t", Ready: 3}})
	stream := &sentBy{messages: messages, answers: map[uint64]int{}}
	err := Serve(stream, d, func([]*jobpb.Reserved) {})
	require.Zero(t, d.Waiting(), "the end of a stream cancels its waiters")
	return err
}

func waitFor(waiter uint64, r *jobpb.Reserve) *noderpc.WaitRequest {
	return &noderpc.WaitRequest{Waiter: waiter, Reserve: r}
}

func TestWaitEndsTheStreamOfAPeerThatBreaksTheRules(t *testing.T) {
	good := &jobpb.Reserve{Topics: []string{"u"}, Max: 1}
	require.ErrorIs(t, serveSent(t, pieces(encoded(t, waitFor(1, good), waitFor(2, good)))), io.EOF)
	for name, second := range map[string]*noderpc.WaitRequest{
		"a number that waits already": waitFor(1, good),
		"no topic":                    waitFor(2, &jobpb.Reserve{Max: 1}),
		"no job asked for":            waitFor(2, &jobpb.Reserve{Topics: []string{"t"}}),
		"a TTR out of range":          waitFor(2, &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: -1}),
		"an empty reserve":            waitFor(2, &jobpb.Reserve{}),
	} {
		t.Run(name, func(t *testing.T) {
			err := serveSent(t, pieces(encoded(t, waitFor(1, good), second)))
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		})
	}
}

// For any messages of a peer, no waiter outlives the stream and no reserve is retried
// indefinitely.
func FuzzWaitRequests(f *testing.F) {
	wait := waitFor(1, &jobpb.Reserve{Topics: []string{"u"}, Max: 1})
	f.Add(encoded(f, wait, &noderpc.WaitRequest{Waiter: 1, Keep: true}, waitFor(2, &jobpb.Reserve{Topics: []string{"t", "u"}, Max: 2})))
	f.Add(encoded(f, wait, wait))
	f.Add(encoded(f, waitFor(1, &jobpb.Reserve{Topics: []string{"t"}})))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := serveSent(t, pieces(data))
		if err != io.EOF {
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		}
	})
}

// For any messages of the leader, a waiter ends exactly once.
func FuzzWaitAnswers(f *testing.F) {
	jobs := []*jobpb.Reserved{{Seq: 1}}
	f.Add(encoded(f, &noderpc.WaitAnswer{Waiter: 1, Jobs: jobs}, &noderpc.WaitAnswer{Waiter: 2, Failure: leaderrpc.NewFailure(TooMany())}, &noderpc.WaitAnswer{Waiter: 2}))
	f.Add(encoded(f, &noderpc.WaitAnswer{Waiter: 3, Jobs: jobs}, &noderpc.WaitAnswer{Waiter: 1, Failure: &leaderrpc.Failure{}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newStream(nil, 0, func([]*jobpb.Reserved) {})
		s.begin()
		ends := make([]int, 3)
		for i := range ends {
			w := &dispatch.Waiter{Reserve: &jobpb.Reserve{}, Done: func([]*jobpb.Reserved, error) { ends[i]++ }}
			s.Add(w)
			if i == 2 {
				s.Cancel(w, false)
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
