package waits

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"tarry/cluster/framerpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
)

// stream carries the waiting reserves of this node to one leader over one stream of a
// connection. It lives until another node leads, and opens that stream again when it breaks.
// Waiters are sent once the leader has replied that it leads. Until then one goroutine
// asks it, however many wait. When the stream breaks, the waiters that
// were sent end with dispatch.ErrStopped, and register again.
type stream struct {
	peer     Peer
	shard    uint32
	giveBack func([]*jobpb.Reserved)
	cancel   context.CancelFunc
	done     chan struct{} // its goroutines have ended

	mu      sync.Mutex
	last    uint64
	ids     map[*dispatch.Waiter]uint64
	waiters map[uint64]*dispatch.Waiter
	gone    map[uint64]bool // canceled because the consumer has disconnected
	unsent  map[uint64]*noderpc.WaitRequest
	out     *sendQueue[*noderpc.WaitRequest] // nil until the leader has replied that it leads
	closed  bool
}

func newStream(peer Peer, shard uint32, giveBack func([]*jobpb.Reserved)) *stream {
	return &stream{
		peer: peer, shard: shard, giveBack: giveBack, done: make(chan struct{}),
		ids: map[*dispatch.Waiter]uint64{}, waiters: map[uint64]*dispatch.Waiter{}, gone: map[uint64]bool{},
		unsent: map[uint64]*noderpc.WaitRequest{},
	}
}

// openStream starts a stream to the leader at peer. It does not wait for the connection.
func openStream(peer Peer, shard uint32, giveBack func([]*jobpb.Reserved)) *stream {
	s := newStream(peer, shard, giveBack)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.done)
		defer s.end()
		for {
			// The error is not reported: the waiters register again.
			_ = s.serve(ctx)
			if !sleep.For(ctx, retryPause) {
				return
			}
		}
	}()
	return s
}

// serve opens the stream and carries waiters until it breaks, or ctx ends.
func (s *stream) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire, err := s.peer.Wait(ctx, framerpc.Late{Do: func(message []byte) { lateJobs(message, s.giveBack) }})
	if err != nil {
		return err
	}
	if err := wire.Send(&noderpc.WaitRequest{Shard: s.shard}); err != nil {
		return err
	}
	if _, err := wire.Recv(); err != nil {
		return err // it does not lead
	}
	out := s.begin()
	defer s.fail()
	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel() // a failed send ends the receiving side too
		out.drain(ctx, wire.Send)
	})
	defer sending.Wait()
	defer drain(wire, s.giveBack)
	defer cancel()
	for {
		a, err := wire.Recv()
		if err != nil {
			return err
		}
		if err := s.answer(a); err != nil {
			return err
		}
	}
}

// drain gives back the jobs that have arrived on a stream whose context has ended, and for which no
// waiter is there any more.
func drain(wire noderpc.Node_WaitClient, giveBack func([]*jobpb.Reserved)) {
	for {
		a, err := wire.Recv()
		if err != nil {
			return
		}
		giveBack(a.Jobs)
	}
}

// lateJobs gives back the jobs of an answer that comes after the stream has ended here.
func lateJobs(message []byte, giveBack func([]*jobpb.Reserved)) {
	a := new(noderpc.WaitAnswer)
	if a.UnmarshalVTUnsafe(message) == nil { // otherwise their reservations expire
		giveBack(a.Jobs)
	}
}

// begin sends those that wait already, in the order in which they came.
func (s *stream) begin() *sendQueue[*noderpc.WaitRequest] {
	out := new(sendQueue[*noderpc.WaitRequest])
	out.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.unsent)) {
		out.put(s.unsent[id])
	}
	clear(s.unsent)
	s.out = out
	return out
}

// Add implements Queue.
func (s *stream) Add(w *dispatch.Waiter) {
	reserve := proto.CloneOf(w.Reserve) // it may be sent after its caller has returned
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
		s.unsent[id] = request
	} else {
		s.out.put(request)
	}
}

// Cancel implements Queue.
func (s *stream) Cancel(w *dispatch.Waiter, keep bool) {
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
		w.Done(nil, dispatch.ErrStopped) // it was sent to no leader
	}
}

// remove removes a waiter. It is called with s.mu held.
func (s *stream) remove(id uint64) (w *dispatch.Waiter, gone bool) {
	w, gone = s.waiters[id], s.gone[id]
	delete(s.waiters, id)
	delete(s.gone, id)
	delete(s.unsent, id)
	delete(s.ids, w)
	return w, gone
}

// answer ends the waiter that a is for. After an error the stream must be closed.
func (s *stream) answer(a *noderpc.WaitAnswer) error {
	s.mu.Lock()
	w, gone := s.remove(a.Waiter)
	s.mu.Unlock()
	if w == nil {
		return nil
	}
	switch {
	case a.Failure != nil:
		err := a.Failure.Err()
		if _, refused := errors.AsType[*job.Error](err); refused {
			w.Done(nil, err)
			return nil
		}
		w.Done(nil, dispatch.ErrStopped)
		return err
	case gone && len(a.Jobs) > 0:
		// The answer was sent before our cancellation arrived.
		s.giveBack(a.Jobs)
		w.Done(nil, nil)
	default:
		w.Done(a.Jobs, nil)
	}
	return nil
}

// fail ends all waiters of a stream that broke. Later ones wait until the leader
// replies again that it leads.
func (s *stream) fail() {
	s.mu.Lock()
	if s.out != nil {
		s.out.close()
		s.out = nil
	}
	left := s.waiters
	s.waiters, s.ids = map[uint64]*dispatch.Waiter{}, map[*dispatch.Waiter]uint64{}
	clear(s.gone)
	clear(s.unsent)
	s.mu.Unlock()
	for _, w := range left {
		w.Done(nil, dispatch.ErrStopped)
	}
}

// end refuses further waiters and ends the remaining ones.
func (s *stream) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.fail()
}

// close breaks the stream for good and waits for its goroutines.
func (s *stream) close() {
	s.cancel()
	<-s.done
}
