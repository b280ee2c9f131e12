package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// waitRoom is where a reserve waits: the leader's dispatcher, or a waitStream to
// it. Each waiter that is added ends with exactly one call of its Done.
type waitRoom interface {
	Add(*dispatch.Waiter)
	Withdraw(w *dispatch.Waiter, keep bool)
}

// waitStream carries the waiting reserves of this node to one leader over one
// stream. It lives until another node leads, and opens the stream again when it
// breaks. Waiters are sent once the leader has said that it leads: until then it is
// asked by one goroutine of this node, however many wait. When the stream breaks
// those that were sent end with dispatch.ErrStopped, and register again.
type waitStream struct {
	client   noderpc.NodeClient
	shard    uint32
	giveBack func([]*jobpb.Reserved)
	cancel   context.CancelFunc
	done     chan struct{} // its goroutines have ended

	mu      sync.Mutex
	last    uint64
	ids     map[*dispatch.Waiter]uint64
	waiters map[uint64]*dispatch.Waiter
	gone    map[uint64]bool                 // withdrawn because the consumer hung up
	parked  map[uint64]*noderpc.WaitRequest // of those that were not sent
	out     *outbox[*noderpc.WaitRequest]   // nil until the leader has said that it leads
	closed  bool
}

func newWaitStream(client noderpc.NodeClient, shard uint32, giveBack func([]*jobpb.Reserved)) *waitStream {
	return &waitStream{
		client: client, shard: shard, giveBack: giveBack, done: make(chan struct{}),
		ids: map[*dispatch.Waiter]uint64{}, waiters: map[uint64]*dispatch.Waiter{}, gone: map[uint64]bool{},
		parked: map[uint64]*noderpc.WaitRequest{},
	}
}

// openWaitStream starts a stream to the leader behind client. It does not wait
// for the connection.
func openWaitStream(client noderpc.NodeClient, shard uint32, giveBack func([]*jobpb.Reserved)) *waitStream {
	s := newWaitStream(client, shard, giveBack)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.done)
		defer s.end()
		for {
			// Why it broke is nothing to report: the waiters register again.
			_ = s.serve(ctx)
			if !pause(ctx, retryPause, nil) {
				return
			}
		}
	}()
	return s
}

// serve opens the stream and carries waiters until it breaks, or ctx ends.
func (s *waitStream) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.client.Wait(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&noderpc.WaitRequest{Shard: s.shard}); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err // it does not lead
	}
	out := s.begin()
	defer s.fail()
	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel() // a failed send ends the receiving side too
		out.drain(ctx, stream.Send)
	})
	defer sending.Wait()
	defer cancel()
	for {
		a, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := s.answer(a); err != nil {
			return err
		}
	}
}

// begin sends those that wait already, in the order in which they came.
func (s *waitStream) begin() *outbox[*noderpc.WaitRequest] {
	out := new(outbox[*noderpc.WaitRequest])
	out.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.parked)) {
		out.put(s.parked[id])
	}
	clear(s.parked)
	s.out = out
	return out
}

// Add implements waitRoom.
func (s *waitStream) Add(w *dispatch.Waiter) {
	reserve, err := w.Reserve.MarshalVT()
	if err != nil {
		w.Done(nil, job.Errorf(job.CodeInternal, "encode the reserve: %w", err))
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		w.Done(nil, dispatch.ErrStopped)
		return
	}
	defer s.mu.Unlock()
	s.last++
	id := s.last
	s.ids[w], s.waiters[id] = id, w
	request := &noderpc.WaitRequest{Shard: s.shard, Waiter: id, Reserve: reserve, Poll: w.Poll}
	if s.out == nil {
		s.parked[id] = request
	} else {
		s.out.put(request)
	}
}

// Withdraw implements waitRoom.
func (s *waitStream) Withdraw(w *dispatch.Waiter, keep bool) {
	s.mu.Lock()
	id, there := s.ids[w]
	unsent := there && s.out == nil
	switch {
	case unsent:
		s.remove(id)
	case there:
		if !keep {
			s.gone[id] = true
		}
		s.out.put(&noderpc.WaitRequest{Shard: s.shard, Waiter: id, Keep: keep})
	}
	s.mu.Unlock()
	if unsent {
		w.Done(nil, dispatch.ErrStopped) // no leader has heard of it
	}
}

// remove takes a waiter out; it needs s.mu.
func (s *waitStream) remove(id uint64) (w *dispatch.Waiter, gone bool) {
	w, gone = s.waiters[id], s.gone[id]
	delete(s.waiters, id)
	delete(s.gone, id)
	delete(s.parked, id)
	delete(s.ids, w)
	return w, gone
}

// errNotLeading ends a stream: what the peer said is that it leads no more.
var errNotLeading = errors.New("the other node does not lead")

// answer ends the waiter that a is for. An error says that the stream is of no use
// any more.
func (s *waitStream) answer(a *noderpc.WaitAnswer) error {
	s.mu.Lock()
	w, gone := s.remove(a.Waiter)
	s.mu.Unlock()
	if w == nil {
		return nil
	}
	var r jobpb.Result
	switch err := r.UnmarshalVT(a.Result); {
	case a.Refusal == noderpc.Refusal_OVERLOADED:
		w.Done(nil, dispatch.ErrFull)
	case a.Refusal == noderpc.Refusal_INVALID:
		w.Done(nil, &job.Error{Code: job.Code(a.Code), Message: a.Message})
	case a.Refusal != noderpc.Refusal_NONE || err != nil:
		w.Done(nil, dispatch.ErrStopped)
		return errNotLeading
	case gone && len(r.Jobs) > 0:
		// The answer crossed our withdrawal on the way.
		s.giveBack(r.Jobs)
		w.Done(nil, nil)
	default:
		w.Done(r.Jobs, nil)
	}
	return nil
}

// fail ends all waiters of a stream that broke; those that come now wait until the
// leader says again that it leads.
func (s *waitStream) fail() {
	s.mu.Lock()
	if s.out != nil {
		s.out.close()
		s.out = nil
	}
	left := s.waiters
	s.waiters, s.ids = map[uint64]*dispatch.Waiter{}, map[*dispatch.Waiter]uint64{}
	clear(s.gone)
	clear(s.parked)
	s.mu.Unlock()
	for _, w := range left {
		w.Done(nil, dispatch.ErrStopped)
	}
}

// end refuses further waiters and ends those that are left.
func (s *waitStream) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.fail()
}

// close breaks the stream for good and waits for its goroutines.
func (s *waitStream) close() {
	s.cancel()
	<-s.done
}
