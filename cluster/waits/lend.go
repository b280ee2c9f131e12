package waits

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/framerpc"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/dispatch/lending"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Lender lets the waiters of this node get jobs of groups that other nodes lead, and those of other nodes the jobs of
// this one. As a home it has a stream to each other node; as a supplier it serves theirs. A cluster with one
// group has none.
type Lender struct {
	lending  *dispatch.Lending
	dial     func(ctx context.Context, node string) (Peer, error)
	giveBack func([]*jobpb.Reserved)

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // taken with the lock of the waiters held
	to     map[string]*toSupplier
	homes  map[string]*fromHome
	closed bool
}

// toSupplier is the stream to another node, which is opened again whenever it breaks.
type toSupplier struct {
	cancel context.CancelFunc
	out    *sendQueue[*noderpc.WaitRequest] // nil: there is no stream
}

// fromHome is the stream of another node.
type fromHome struct {
	out    sendQueue[*noderpc.WaitAnswer]
	cancel context.CancelFunc
	over   chan struct{} // closed when its guests are gone

	mu    sync.Mutex // of its end: no message counts after that
	ended bool
}

// NewLender makes the waiters of ws be lent. It must be closed. dial opens a connection to a node by its server id.
// giveBack releases jobs that no consumer saw; it must not block.
func NewLender(ws *dispatch.Waiters, dial func(ctx context.Context, node string) (Peer, error), giveBack func([]*jobpb.Reserved)) *Lender {
	l := &Lender{dial: dial, giveBack: giveBack, to: map[string]*toSupplier{}, homes: map[string]*fromHome{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.lending = ws.Lend(l.send, giveBack)
	return l
}

// SetNodes says which other nodes there are, by their server ids. It does not block.
func (l *Lender) SetNodes(nodes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for node, s := range l.to {
		if !slices.Contains(nodes, node) {
			s.cancel()
			delete(l.to, node)
		}
	}
	for _, node := range nodes {
		if l.to[node] == nil {
			ctx, cancel := context.WithCancel(l.ctx)
			s := &toSupplier{cancel: cancel}
			l.to[node] = s
			l.work.Go(func() { l.lendTo(ctx, node, s) })
		}
	}
}

// Close ends the streams and waits for what the Lender has started. Streams of other nodes
// end with their connections, which must be closed before.
func (l *Lender) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.work.Wait()
}

// send implements dispatch.Send.
func (l *Lender) send(node string, m lending.Message, r *jobpb.Reserve) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.Kind {
	case lending.Want, lending.Granted, lending.Returned:
		h := l.homes[node]
		return h != nil && h.out.put(answerOf(m))
	}
	s := l.to[node]
	return s != nil && s.out != nil && s.out.put(requestOf(m, r))
}

// lendTo keeps a stream to a supplier until ctx ends.
func (l *Lender) lendTo(ctx context.Context, node string, s *toSupplier) {
	for ctx.Err() == nil {
		// The error is not reported: the waiters are at home again.
		_ = l.lendOver(ctx, node, s)
		sleep.For(ctx, retryPause)
	}
}

// lendOver lends waiters over one stream until it breaks.
func (l *Lender) lendOver(ctx context.Context, node string, s *toSupplier) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	peer, err := l.dial(ctx, node)
	if err != nil {
		return err
	}
	wire, err := peer.Wait(ctx, framerpc.Late{Do: func(message []byte) { lateJobs(message, l.giveBack) }})
	if err != nil {
		return err
	}
	if err := wire.Send(&noderpc.WaitRequest{Lends: true}); err != nil {
		return err
	}
	if _, err := wire.Recv(); err != nil {
		return err
	}
	out := new(sendQueue[*noderpc.WaitRequest])
	out.init()
	l.mu.Lock()
	s.out = out
	l.mu.Unlock()
	l.lending.OpenSupplier(node)
	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel() // a failed send ends the receiving side too
		out.drain(ctx, wire.Send)
	})
	for err == nil {
		var a *noderpc.WaitAnswer
		if a, err = wire.Recv(); err == nil {
			l.lending.Receive(node, messageOf(a))
		}
	}
	cancel()
	sending.Wait()
	l.mu.Lock()
	s.out = nil
	l.mu.Unlock()
	out.close()
	drain(wire, l.giveBack)
	l.lending.CloseSupplier(node)
	return err
}

// Serve is the supplier's end of the stream of a home. It ends an earlier stream of that node first.
func (l *Lender) Serve(stream noderpc.Node_WaitServer, node string) error {
	framerpc.OnUnsent(stream.Context(), func(m any) { l.giveBack(m.(*noderpc.WaitAnswer).Jobs) })
	if err := stream.Send(new(noderpc.WaitAnswer)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	h := &fromHome{cancel: cancel, over: make(chan struct{})}
	defer close(h.over)
	h.out.init()
	failed := make(chan error, 1)
	for before := l.enter(node, h); before != h; before = l.enter(node, h) {
		if before == nil {
			return leaderrpc.ErrNotLeader
		}
		before.cancel()
		<-before.over
	}
	l.lending.OpenHome(node)
	l.work.Go(func() { failed <- l.receive(stream, node, h) })
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		h.out.drain(ctx, stream.Send)
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	<-sent
	l.end(node, h)
	return err
}

// enter makes h the stream of a home, unless there is one. It returns the stream that is; nil while the
// Lender ends.
func (l *Lender) enter(node string, h *fromHome) *fromHome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	if l.homes[node] == nil {
		l.homes[node] = h
	}
	return l.homes[node]
}

// receive takes the messages of a home until its stream ends. That is when Serve returns, at the latest.
func (l *Lender) receive(stream noderpc.Node_WaitServer, node string, h *fromHome) error {
	for {
		m, err := stream.Recv()
		if err == nil {
			err = l.handle(node, h, m)
		}
		if err != nil {
			return err
		}
	}
}

func (l *Lender) handle(node string, h *fromHome, m *noderpc.WaitRequest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return context.Canceled
	}
	switch {
	case m.Waiter == 0:
		if err := job.CheckTopic("topic", m.Topic); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		kind := lending.Interest
		if m.Done {
			kind = lending.Done
		}
		l.lending.Receive(node, lending.Message{Kind: kind, Topic: m.Topic, Short: m.Short})
	case m.Reserve == nil:
		l.lending.Receive(node, lending.Message{Kind: lending.Cancel, Waiter: m.Waiter, Keep: m.Keep})
	default:
		if err := oplog.CheckReserve(job.Newest(), m.Reserve); err != nil {
			return status.Errorf(codes.InvalidArgument, "waiter %d: %v", m.Waiter, err)
		}
		if err := job.CheckPeerPrincipal(m.Reserve.Principal); err != nil {
			h.out.put(answerOf(lending.Message{Kind: lending.Granted, Waiter: m.Waiter, Jobs: dispatch.Got{Err: job.Errorf(job.CodeForbidden, "%w", err)}}))
			return nil
		}
		if err := l.lending.Admit(node, lending.Message{Kind: lending.Lend, Waiter: m.Waiter, Poll: m.Poll}, m.Reserve); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
	return nil
}

// end ends the stream of a home: its guests are gone, and jobs that were not sent are released.
func (l *Lender) end(node string, h *fromHome) {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	left := h.out.close()
	l.lending.CloseHome(node) // before another stream of the node can be: what its guests get is not for that
	l.mu.Lock()
	delete(l.homes, node)
	l.mu.Unlock()
	for _, a := range left {
		l.giveBack(a.Jobs)
	}
}

// requestOf returns what a home sends.
func requestOf(m lending.Message, r *jobpb.Reserve) *noderpc.WaitRequest {
	return &noderpc.WaitRequest{
		Waiter: m.Waiter, Reserve: r, Poll: m.Poll, Keep: m.Keep,
		Topic: m.Topic, Done: m.Kind == lending.Done, Short: m.Short,
	}
}

// answerOf returns what a supplier sends.
func answerOf(m lending.Message) *noderpc.WaitAnswer {
	a := &noderpc.WaitAnswer{Waiter: m.Waiter, Topic: m.Topic, Want: uint32(m.N), More: m.More}
	if got, ok := m.Jobs.(dispatch.Got); ok {
		a.Jobs = got.Jobs
		if got.Err != nil {
			a.Failure = leaderrpc.NewFailure(got.Err)
		}
	}
	return a
}

// messageOf returns what a supplier has sent.
func messageOf(a *noderpc.WaitAnswer) lending.Message {
	switch {
	case a.Waiter == 0:
		return lending.Message{Kind: lending.Want, Topic: a.Topic, N: int(a.Want)}
	case a.Failure != nil:
		if e, ok := errors.AsType[*job.Error](a.Failure.Err()); ok {
			return lending.Message{Kind: lending.Granted, Waiter: a.Waiter, Jobs: dispatch.Got{Err: e}}
		}
	case len(a.Jobs) > 0:
		return lending.Message{Kind: lending.Granted, Waiter: a.Waiter, More: a.More, Jobs: dispatch.Got{Jobs: a.Jobs}}
	}
	return lending.Message{Kind: lending.Returned, Waiter: a.Waiter}
}
