package cluster

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/noderpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// service answers other nodes.
type service struct {
	noderpc.UnimplementedNodeServer
	shard func(number uint32) *Shard // nil for a shard this node does not have, or not yet
}

func (v *service) shardOf(number uint32) (*Shard, error) {
	if s := v.shard(number); s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "this node has no shard %d", number)
}

// Propose implements noderpc.NodeServer: another node's batch joins this node's
// own. It never forwards, so that a message travels one hop at most.
func (v *service) Propose(ctx context.Context, req *noderpc.ProposeRequest) (*noderpc.ProposeResponse, error) {
	s, err := v.shardOf(req.Shard)
	if err != nil {
		return nil, err
	}
	if len(req.Ops) > maxEntryBytes {
		return nil, status.Error(codes.InvalidArgument, errEntryTooLarge(len(req.Ops)).Message)
	}
	n, err := job.CheckOps(req.Ops, s.machine.Version())
	if newer := new(job.NewerError); errors.As(err, &newer) && newer.Since != 0 {
		return &noderpc.ProposeResponse{Refusal: noderpc.Refusal_NEWER, Message: newer.Error()}, nil
	}
	if err != nil || n != int(req.Count) {
		return nil, status.Errorf(codes.InvalidArgument, "the message says %d operations and holds %d (%v)", req.Count, n, err)
	}
	if !s.leadsSoon(ctx) {
		return &noderpc.ProposeResponse{Refusal: noderpc.Refusal_NOT_LEADER}, nil
	}
	if why := s.cfg.AddsRefused(); why != "" && job.HasAdd(req.Ops) {
		return &noderpc.ProposeResponse{Refusal: noderpc.Refusal_DISK_LOW, Message: why}, nil
	}
	out := make(chan doOutcome, 1)
	// A request that expires at once is not held when leadership moves: its
	// own node holds it.
	s.batcher.submit(&request{
		ops: req.Ops, count: int(req.Count), late: time.Now().Add(s.cfg.HoldTime),
		done: func(rs []*jobpb.Result, err error) { out <- doOutcome{rs, err} },
	}, false)
	select {
	case o := <-out:
		return proposeResponse(o)
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// proposeHold is how long a batch waits for its node to be established as the leader,
// so that it is not sent again and again meanwhile. Its sender must have the answer
// before it gives up a leader that was deposed: that nothing was done is worth knowing.
const proposeHold = deposedGrace / 2

func (s *Shard) leadsSoon(ctx context.Context) bool {
	if s.term.Load() != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, proposeHold)
	defer cancel()
	return s.established(ctx) != nil
}

func proposeResponse(o doOutcome) (*noderpc.ProposeResponse, error) {
	if o.err == nil {
		results, err := (&jobpb.Results{Results: o.results}).MarshalVT()
		if err != nil {
			return nil, status.Errorf(codes.Internal, "encode results: %v", err)
		}
		return &noderpc.ProposeResponse{Results: results}, nil
	}
	resp := &noderpc.ProposeResponse{Message: o.err.Error(), Refusal: noderpc.Refusal_UNKNOWN}
	switch job.CodeOf(o.err) {
	case job.CodeNotApplied:
		resp.Refusal = noderpc.Refusal_NOT_LEADER
	case job.CodeOverloaded:
		resp.Refusal = noderpc.Refusal_OVERLOADED
	}
	return resp, nil
}

// Wait implements noderpc.NodeServer. A stream belongs to the shard that its
// first message names.
func (v *service) Wait(stream noderpc.Node_WaitServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s, err := v.shardOf(first.Shard)
	if err != nil {
		return err
	}
	t := s.established(stream.Context())
	if t == nil {
		return status.Error(codes.FailedPrecondition, "this node does not lead")
	}
	return serveWaiters(stream, t.dispatcher, s.giveBack)
}

// Read implements noderpc.NodeServer.
func (v *service) Read(ctx context.Context, req *noderpc.ReadRequest) (*noderpc.ReadResponse, error) {
	s, err := v.shardOf(req.Shard)
	if err != nil {
		return nil, err
	}
	a, err := s.readAsLeader(ctx, req)
	if err == errRetry {
		return &noderpc.ReadResponse{Refusal: noderpc.Refusal_NOT_LEADER}, nil
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "read: %v", err)
	}
	return encodeAnswer(a)
}

// Digest implements noderpc.NodeServer.
func (v *service) Digest(ctx context.Context, req *noderpc.DigestRequest) (*noderpc.DigestResponse, error) {
	s, err := v.shardOf(req.Shard)
	if err != nil {
		return nil, err
	}
	index, digest, err := s.marks.wait(ctx, req.Mark)
	if err != nil {
		return nil, status.Errorf(codes.DeadlineExceeded, "digest at mark: %v", err)
	}
	return &noderpc.DigestResponse{Index: index, Digest: digest}, nil
}

// Verify implements noderpc.NodeServer.
func (v *service) Verify(ctx context.Context, req *noderpc.VerifyRequest) (*noderpc.VerifyResponse, error) {
	s, err := v.shardOf(req.Shard)
	if err != nil {
		return nil, err
	}
	if s.dispatcher() == nil {
		return &noderpc.VerifyResponse{Refusal: noderpc.Refusal_NOT_LEADER}, nil
	}
	r, err := s.verifyAsLeader(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "verify: %v", err)
	}
	resp := &noderpc.VerifyResponse{Index: r.Index, Equal: r.Equal}
	for _, d := range r.Digests {
		resp.Digests = append(resp.Digests, &noderpc.NodeDigest{NodeId: d.ID, Digest: d.Digest, Error: d.Error})
	}
	return resp, nil
}
