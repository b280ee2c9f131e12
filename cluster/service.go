package cluster

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/framerpc"
	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/cluster/report"
	"tarry/cluster/waits"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// service serves the calls of other nodes.
type service struct {
	noderpc.UnimplementedNodeServer
	shard func(number uint32) *Shard // nil for a shard this node does not have, or not yet
	// standby answers what the leader knows of a standby.
	standby func(context.Context, *noderpc.StandbyRequest) (*report.Standby, error)
}

func (v *service) shardOf(number uint32) (*Shard, error) {
	if s := v.shard(number); s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "this node has no shard %d", number)
}

// Propose implements noderpc.NodeServer: another node's batch joins this node's
// own. It never forwards, so a message makes one hop at most.
func (v *service) Propose(ctx context.Context, req *noderpc.ProposeRequest) (*noderpc.ProposeResponse, error) {
	s, err := v.shardOf(req.Shard)
	if err != nil {
		return nil, err
	}
	if err := groupcommit.CheckSize(len(req.Ops)); err != nil {
		return nil, err
	}
	n, err := oplog.CheckOps(req.Ops, s.machine.Version())
	if newer := new(oplog.NewerError); errors.As(err, &newer) && newer.Since != 0 {
		return nil, job.NotApplied("%w", newer)
	}
	if err != nil || n != int(req.Count) {
		return nil, status.Errorf(codes.InvalidArgument, "the message announces %d operations and has %d (%v)", req.Count, n, err)
	}
	if !s.leadsSoon(ctx) {
		return nil, leaderrpc.ErrNotLeader
	}
	if why := s.cfg.Host.AddsRefused(); why != "" && oplog.HasAdd(req.Ops) {
		return nil, errDiskLow(why)
	}
	tenant := ""
	if s.machine.Namespaces() != nil {
		tenant = tenantFrom
	}
	out := make(chan doOutcome, 1)
	// A request that expires at once is not held when leadership moves: its
	// own node holds it.
	s.batcher.Submit(&groupcommit.Request{
		Ops: req.Ops, Count: int(req.Count), Callers: int(req.Count), Tenant: tenant, Deadline: time.Now().Add(s.cfg.HoldTime),
		Done: func(rs []*jobpb.Result, err error) { out <- doOutcome{rs, err} },
	}, false)
	select {
	case o := <-out:
		return &noderpc.ProposeResponse{Results: o.results}, forwarded(o.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// proposeHold is how long a batch waits until its node is the established leader, so
// that its sender need not send it repeatedly. It is short enough for the reply to
// arrive before the sender stops waiting for a deposed leader: the reply that nothing
// was applied allows a retry.
const proposeHold = leaderrpc.DeposedGrace / 2

func (s *Shard) leadsSoon(ctx context.Context) bool {
	if s.leadership.Load() != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, proposeHold)
	defer cancel()
	return s.established(ctx) != nil
}

// forwarded converts a batch's failure for the node that sent it: the next leader may
// take a batch of which nothing was applied here.
func forwarded(err error) error {
	switch {
	case err == nil:
		return nil
	case job.CodeOf(err) == job.CodeNotApplied:
		return leaderrpc.ErrNotLeader
	case job.CodeOf(err) == job.CodeInternal:
		return job.Unknown("the outcome is unknown: %w", err)
	}
	return err
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
		return leaderrpc.ErrNotLeader
	}
	return waits.Serve(stream, leaderQueue{s, t}, s.giveBack)
}

// FinishAndReserve implements noderpc.NodeServer. It never forwards.
func (v *service) FinishAndReserve(ctx context.Context, req *noderpc.FinishAndReserveRequest) (*noderpc.FinishAndReserveResponse, error) {
	s, err := v.shardOf(req.Shard)
	if err != nil {
		return nil, err
	}
	if err := checkEnds(req); err != nil {
		return nil, err
	}
	if req.Reserve == nil {
		return nil, status.Error(codes.InvalidArgument, "the message has no reserve")
	}
	if err := cmp.Or(oplog.CheckReserve(job.Newest(), req.Reserve), job.CheckPeerPrincipal(req.Reserve.Principal)); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "reserve: %v", err)
	}
	framerpc.OnUnsent(ctx, func(reply any) { s.giveBack(reply.(*noderpc.FinishAndReserveResponse).Jobs) })
	return s.finishAndReserve(ctx, req)
}

// checkEnds checks what a FinishAndReserve ends.
func checkEnds(req *noderpc.FinishAndReserveRequest) error {
	if err := job.CheckPeerPrincipal(req.Principal); err != nil {
		return status.Errorf(codes.InvalidArgument, "the message: %v", err)
	}
	n := len(req.Finishes)
	if req.Delete == nil && (n == 0 || n > job.MaxBatch) {
		return status.Errorf(codes.InvalidArgument, "the message has %d finishes; it may have 1 to %d", n, job.MaxBatch)
	}
	for i, f := range req.Finishes {
		if err := oplog.CheckOp(&jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}}, job.Newest()); err != nil {
			return status.Errorf(codes.InvalidArgument, "finish %d: %v", i, err)
		}
	}
	if req.Delete == nil {
		return nil
	}
	if n > 0 {
		return status.Errorf(codes.InvalidArgument, "the message has a delete and %d finishes", n)
	}
	if err := oplog.CheckOp(&jobpb.Op{Kind: &jobpb.Op_Delete{Delete: req.Delete}}, job.Newest()); err != nil {
		return status.Errorf(codes.InvalidArgument, "delete: %v", err)
	}
	return nil
}

// Read implements noderpc.NodeServer.
func (v *service) Read(ctx context.Context, req *jobpb.Read) (*jobpb.ReadResult, error) {
	return inShard(ctx, v, req, (*Shard).readAsLeader)
}

// Verify implements noderpc.NodeServer.
func (v *service) Verify(ctx context.Context, req *noderpc.VerifyRequest) (*noderpc.VerifyResponse, error) {
	return inShard(ctx, v, req, (*Shard).verifyAsLeader)
}

// Standby implements noderpc.NodeServer.
func (v *service) Standby(ctx context.Context, req *noderpc.StandbyRequest) (*report.Standby, error) {
	if _, err := v.shardOf(req.Shard); err != nil {
		return nil, err
	}
	return v.standby(ctx, req)
}

// Digest implements noderpc.NodeServer.
func (v *service) Digest(ctx context.Context, req *noderpc.DigestRequest) (*noderpc.DigestResponse, error) {
	return inShard(ctx, v, req, (*Shard).digest)
}

// inShard serves a call by a method of the shard that the call names.
func inShard[Req interface{ GetShard() uint32 }, Resp any](ctx context.Context, v *service, req Req, answer func(*Shard, context.Context, Req) (Resp, error)) (resp Resp, err error) {
	s, err := v.shardOf(req.GetShard())
	if err != nil {
		return resp, err
	}
	return answer(s, ctx, req)
}
