package cluster

import (
	"context"
	"errors"
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
	room     func() waitRoom // the dispatcher; nil while this node does not lead
	giveBack func([]*jobpb.Reserved)
	out      outbox[*noderpc.WaitAnswer]

	mu      sync.Mutex
	waiters map[uint64]remoteWaiter
}

type remoteWaiter struct {
	w    *dispatch.Waiter
	room waitRoom
}

// serveWaiters runs until the stream ends; a message that breaks the rules ends
// it. first was received from it already.
func serveWaiters(stream noderpc.Node_WaitServer, first *noderpc.WaitRequest, room func() waitRoom, giveBack func([]*jobpb.Reserved)) error {
	r := &remoteWaiters{room: room, giveBack: giveBack, waiters: map[uint64]remoteWaiter{}}
	r.out.init()
	ctx, cancel := context.WithCancel(stream.Context())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.out.drain(ctx, stream.Send)
	}()
	m, err := first, error(nil)
	for err == nil {
		if err = r.handle(m); err == nil {
			m, err = stream.Recv()
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
		rw, there := r.waiters[m.Waiter]
		r.mu.Unlock()
		if there {
			rw.room.Withdraw(rw.w, m.Keep)
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
	room := r.room()
	if room == nil {
		r.out.put(&noderpc.WaitAnswer{Waiter: m.Waiter, Refusal: noderpc.Refusal_NOT_LEADER})
		return nil
	}
	id := m.Waiter
	w := &dispatch.Waiter{Reserve: reserve, Poll: m.Poll}
	w.Done = func(jobs []*jobpb.Reserved, err error) { r.answer(id, jobs, err) }
	r.mu.Lock()
	_, taken := r.waiters[id]
	if !taken {
		r.waiters[id] = remoteWaiter{w, room}
	}
	r.mu.Unlock()
	if taken {
		return status.Errorf(codes.InvalidArgument, "waiter %d waits already", id)
	}
	room.Add(w)
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
	left := make([]remoteWaiter, 0, len(r.waiters))
	for _, rw := range r.waiters {
		left = append(left, rw)
	}
	r.mu.Unlock()
	for _, rw := range left {
		rw.room.Withdraw(rw.w, false)
	}
	for _, a := range r.out.close() {
		var res jobpb.Result
		if err := res.UnmarshalVT(a.Result); err == nil && len(res.Jobs) > 0 {
			r.giveBack(res.Jobs)
		}
	}
}
