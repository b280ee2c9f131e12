package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// remoteWaiters is the leader's end of one waitStream: the waiters of one other
// node. When the stream ends they are withdrawn, and jobs that were assigned but
// not sent go back.
type remoteWaiters struct {
	room     waitRoom // the dispatcher
	giveBack func([]*jobpb.Reserved)
	out      outbox[*noderpc.WaitAnswer]

	mu      sync.Mutex
	waiters map[uint64]*dispatch.Waiter
}

// serveWaiters says that this node leads and then runs until the stream ends; a
// message that breaks the rules ends it.
func serveWaiters(stream noderpc.Node_WaitServer, room waitRoom, giveBack func([]*jobpb.Reserved)) error {
	if err := stream.Send(new(noderpc.WaitAnswer)); err != nil {
		return err
	}
	r := &remoteWaiters{room: room, giveBack: giveBack, waiters: map[uint64]*dispatch.Waiter{}}
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
	if len(m.Reserve) == 0 {
		r.mu.Lock()
		w := r.waiters[m.Waiter]
		r.mu.Unlock()
		if w != nil {
			r.room.Withdraw(w, m.Keep)
		}
		return nil
	}
	reserve := new(jobpb.Reserve)
	err := reserve.UnmarshalVT(m.Reserve)
	if err == nil {
		err = job.CheckReserve(reserve)
	}
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "waiter %d: %v", m.Waiter, err)
	}
	id := m.Waiter
	w := &dispatch.Waiter{Reserve: reserve, Poll: m.Poll}
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
	r.room.Add(w)
	return nil
}

func (r *remoteWaiters) answer(id uint64, jobs []*jobpb.Reserved, err error) {
	r.mu.Lock()
	delete(r.waiters, id)
	r.mu.Unlock()
	a := &noderpc.WaitAnswer{Waiter: id}
	refused, ofState := errors.AsType[*job.Error](err)
	switch {
	case err == nil:
		res := jobpb.Result{Jobs: jobs}
		if a.Result, err = res.MarshalVT(); err != nil {
			a.Refusal = noderpc.Refusal_NOT_LEADER
		}
	case ofState:
		a.Refusal, a.Code, a.Message = noderpc.Refusal_INVALID, string(refused.Code), refused.Message
	case errors.Is(err, dispatch.ErrFull):
		a.Refusal = noderpc.Refusal_OVERLOADED
	default:
		a.Refusal = noderpc.Refusal_NOT_LEADER
	}
	if !r.out.put(a) && len(jobs) > 0 {
		r.giveBack(jobs)
	}
}

// end withdraws all waiters and gives back what was assigned but not sent.
func (r *remoteWaiters) end() {
	r.mu.Lock()
	left := slices.Collect(maps.Values(r.waiters))
	r.mu.Unlock()
	for _, w := range left {
		r.room.Withdraw(w, false)
	}
	for _, a := range r.out.close() {
		var res jobpb.Result
		if err := res.UnmarshalVT(a.Result); err == nil && len(res.Jobs) > 0 {
			r.giveBack(res.Jobs)
		}
	}
}
