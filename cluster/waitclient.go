package cluster

import (
	"context"
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

// waitStream carries the waiting reserves of this node to the leader over one
// stream. When the stream breaks all its waiters end with dispatch.ErrStopped
// and register again with whoever leads then.
type waitStream struct {
	shard    uint32
	giveBack func([]*jobpb.Reserved)
	cancel   context.CancelFunc
	out      outbox[*noderpc.WaitRequest]
	done     chan struct{} // both goroutines have ended

	mu      sync.Mutex
	last    uint64
	ids     map[*dispatch.Waiter]uint64
	waiters map[uint64]*dispatch.Waiter
	gone    map[uint64]bool // withdrawn because the consumer hung up
	broken  bool
}

// openWaitStream starts a stream to the leader behind client. It does not wait
// for the connection: a leader that cannot be reached breaks the stream.
func openWaitStream(client noderpc.NodeClient, shard uint32, giveBack func([]*jobpb.Reserved)) *waitStream {
	ctx, cancel := context.WithCancel(context.Background())
	s := &waitStream{
		shard: shard, giveBack: giveBack, cancel: cancel, done: make(chan struct{}),
		ids: map[*dispatch.Waiter]uint64{}, waiters: map[uint64]*dispatch.Waiter{}, gone: map[uint64]bool{},
	}
	s.out.init()
	go func() {
		defer close(s.done)
		defer s.fail()
		stream, err := client.Wait(ctx)
		if err != nil {
			return // the waiters register elsewhere; there is nothing to report
		}
		var sending sync.WaitGroup
		sending.Add(1)
		go func() {
			defer sending.Done()
			defer cancel() // a failed send ends the receiving side too
			s.out.drain(ctx, stream.Send)
		}()
		s.receive(stream)
		cancel()
		sending.Wait()
	}()
	return s
}

func (s *waitStream) receive(stream noderpc.Node_WaitClient) {
	for {
		a, err := stream.Recv()
		if err != nil {
			return
		}
		s.answer(a)
	}
}

// Add implements waitRoom.
func (s *waitStream) Add(w *dispatch.Waiter) {
	reserve, err := w.Reserve.MarshalVT()
	s.mu.Lock()
	if s.broken || err != nil {
		s.mu.Unlock()
		w.Done(nil, dispatch.ErrStopped)
		return
	}
	s.last++
	id := s.last
	s.ids[w], s.waiters[id] = id, w
	s.mu.Unlock()
	s.out.put(&noderpc.WaitRequest{Shard: s.shard, Waiter: id, Reserve: reserve, Poll: w.Poll})
}

// Withdraw implements waitRoom.
func (s *waitStream) Withdraw(w *dispatch.Waiter, keep bool) {
	s.mu.Lock()
	id, there := s.ids[w]
	if there && !keep {
		s.gone[id] = true
	}
	s.mu.Unlock()
	if there {
		s.out.put(&noderpc.WaitRequest{Shard: s.shard, Waiter: id, Keep: keep})
	}
}

func (s *waitStream) answer(a *noderpc.WaitAnswer) {
	s.mu.Lock()
	w := s.waiters[a.Waiter]
	gone := s.gone[a.Waiter]
	delete(s.waiters, a.Waiter)
	delete(s.gone, a.Waiter)
	delete(s.ids, w)
	s.mu.Unlock()
	if w == nil {
		return
	}
	var r jobpb.Result
	switch err := r.UnmarshalVT(a.Result); {
	case a.Refusal == noderpc.Refusal_OVERLOADED:
		w.Done(nil, dispatch.ErrFull)
	case a.Refusal == noderpc.Refusal_INVALID:
		w.Done(nil, &job.Error{Code: job.Code(a.Code), Message: a.Message})
	case a.Refusal != noderpc.Refusal_NONE || err != nil:
		w.Done(nil, dispatch.ErrStopped)
	case gone && len(r.Jobs) > 0:
		// The answer crossed our withdrawal on the way.
		s.giveBack(r.Jobs)
		w.Done(nil, nil)
	default:
		w.Done(r.Jobs, nil)
	}
}

// fail ends all waiters of a broken stream.
func (s *waitStream) fail() {
	s.mu.Lock()
	s.broken = true
	left := s.waiters
	s.waiters, s.ids, s.gone = nil, nil, nil
	s.mu.Unlock()
	s.out.close()
	for _, w := range left {
		w.Done(nil, dispatch.ErrStopped)
	}
}

// isBroken reports whether a new stream is needed.
func (s *waitStream) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// close breaks the stream and waits for its goroutines.
func (s *waitStream) close() {
	s.cancel()
	<-s.done
}
