package waits

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/framerpc"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// remoteWaiters are the waiters of one other node. When the stream ends they are
// canceled, and jobs that were assigned but not sent are released.
type remoteWaiters struct {
	queue    Queue // the dispatcher
	giveBack func([]*jobpb.Reserved)
	out      sendQueue[*noderpc.WaitAnswer]

	mu      sync.Mutex
	waiters map[uint64]*dispatch.Waiter
}

// Serve is the leader's end of a stream. It sends the other node that this one leads.
// The other node's waiters then wait in queue until the stream ends. An invalid message
// ends the stream. giveBack releases jobs that were assigned and not sent.
func Serve(stream noderpc.Node_WaitServer, queue Queue, giveBack func([]*jobpb.Reserved)) error {
	framerpc.OnUnsent(stream.Context(), func(m any) { giveBack(m.(*noderpc.WaitAnswer).Jobs) })
	if err := stream.Send(new(noderpc.WaitAnswer)); err != nil {
		return err
	}
	r := &remoteWaiters{queue: queue, giveBack: giveBack, waiters: map[uint64]*dispatch.Waiter{}}
	r.out.init()
	ctx, cancel := context.WithCancel(stream.Context())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.out.drain(ctx, stream.Send)
	}()
	var err error
	for err == nil {
		var m *noderpc.WaitRequest
		if m, err = stream.Recv(); err == nil {
			err = r.handle(m)
		}
	}
	cancel()
	<-sent
	r.end()
	return err
}

func (r *remoteWaiters) handle(m *noderpc.WaitRequest) error {
	if m.Reserve == nil {
		r.mu.Lock()
		w := r.waiters[m.Waiter]
		r.mu.Unlock()
		if w != nil {
			r.queue.Cancel(w, m.Keep)
		}
		return nil
	}
	if err := oplog.CheckReserve(job.Newest(), m.Reserve); err != nil {
		return status.Errorf(codes.InvalidArgument, "waiter %d: %v", m.Waiter, err)
	}
	if err := job.CheckPeerPrincipal(m.Reserve.Principal); err != nil {
		// A node that leads no more may have waited for its own work.
		r.send(m.Waiter, nil, job.Errorf(job.CodeForbidden, "%w", err))
		return nil
	}
	id := m.Waiter
	w := &dispatch.Waiter{Reserve: m.Reserve, Poll: m.Poll}
	w.Done = func(jobs []*jobpb.Reserved, err error) { r.answer(id, jobs, err) }
	r.mu.Lock()
	_, taken := r.waiters[id]
	if !taken {
		r.waiters[id] = w
	}
	r.mu.Unlock()
	if taken {
		return status.Errorf(codes.InvalidArgument, "waiter %d waits already", id)
	}
	r.queue.Add(w)
	return nil
}

func (r *remoteWaiters) answer(id uint64, jobs []*jobpb.Reserved, err error) {
	r.mu.Lock()
	delete(r.waiters, id)
	r.mu.Unlock()
	r.send(id, jobs, err)
}

func (r *remoteWaiters) send(id uint64, jobs []*jobpb.Reserved, err error) {
	a := &noderpc.WaitAnswer{Waiter: id, Jobs: jobs}
	_, ofState := errors.AsType[*job.Error](err)
	switch {
	case err == nil:
	case ofState:
		a.Failure = leaderrpc.NewFailure(err)
	case errors.Is(err, dispatch.ErrFull):
		a.Failure = leaderrpc.NewFailure(TooMany())
	default:
		a.Failure = leaderrpc.NewFailure(leaderrpc.ErrNotLeader)
	}
	if !r.out.put(a) {
		r.giveBack(jobs)
	}
}

// end cancels all waiters and releases the jobs that were assigned but not sent.
func (r *remoteWaiters) end() {
	r.mu.Lock()
	left := slices.Collect(maps.Values(r.waiters))
	r.mu.Unlock()
	for _, w := range left {
		r.queue.Cancel(w, false)
	}
	for _, a := range r.out.close() {
		r.giveBack(a.Jobs)
	}
}
