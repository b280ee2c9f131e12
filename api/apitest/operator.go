package apitest

import (
	"context"
	"strings"
	"sync"
	"time"

	"tarry/job"
)

// Operator is a fake cluster of three nodes.
type Operator struct {
	mu    sync.Mutex
	calls []string
	// Err, if set, is the error of every call.
	Err error
	// NotReady, if set, is why the node cannot serve.
	NotReady []string
	// Leader is the leader's HTTP address that replies name; "": none.
	Leader string
}

// Calls lists the requested changes, as "verb argument".
func (o *Operator) Calls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.calls...)
}

func (o *Operator) call(words ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Err == nil {
		o.calls = append(o.calls, strings.TrimSpace(strings.Join(words, " ")))
	}
	return o.Err
}

// Members implements api.Operator.
func (o *Operator) Members(context.Context) ([]job.Member, error) {
	if o.Err != nil {
		return nil, o.Err
	}
	return []job.Member{
		{ID: "n1", Address: "host1:7301", HTTPAddress: "host1:7300", Role: "leader", Voter: true, Alive: true, AppliedIndex: 42, Version: "v0.1.0", ClusterVersion: 1, Runs: job.Versions{Min: 1, Max: 2}},
		{ID: "n2", Address: "host2:7301", HTTPAddress: "host2:7300", Role: "follower", Voter: true, Alive: true, AppliedIndex: 41, Lag: 1, Version: "v0.1.0", ClusterVersion: 1, Runs: job.Versions{Min: 1, Max: 2}},
		{ID: "n3", Address: "host3:7301", Role: "follower", Voter: true},
	}, nil
}

// Health implements api.Operator.
func (o *Operator) Health(context.Context) (job.Health, error) {
	return job.Health{FailureTolerance: 0, Reasons: []string{"n3 has not been heard of for 12 s"}, ClusterVersion: 1, Upgrade: "version 2 waits for n3, which does not answer"}, o.Err
}

// Clocks implements api.Operator.
func (o *Operator) Clocks(context.Context) (job.Clocks, error) {
	return job.Clocks{
		MaxOffset: 5 * time.Second, Agreed: true, Majority: time.UnixMilli(1_700_000_000_000), ClusterAhead: 12 * time.Millisecond,
		Nodes: []job.NodeClock{
			{ID: "n1", Voter: true, Known: true, Offset: time.Hour, Within: 2 * time.Millisecond, Off: true},
			{ID: "n2", Voter: true, Known: true},
			{ID: "n3", Voter: true},
		},
	}, o.Err
}

// ResetClock implements api.Operator.
func (o *Operator) ResetClock(context.Context) error { return o.call("reset clock") }

// TransferLeadership implements api.Operator.
func (o *Operator) TransferLeadership(_ context.Context, id string) error {
	return o.call("transfer", id)
}

// RemoveMember implements api.Operator.
func (o *Operator) RemoveMember(_ context.Context, id string) error { return o.call("remove", id) }

// Join implements api.Operator.
func (o *Operator) Join(_ context.Context, addrs []string) error {
	return o.call("join", strings.Join(addrs, ","))
}

// Leave implements api.Operator.
func (o *Operator) Leave(context.Context) error { return o.call("leave") }

// Verify implements api.Operator.
func (o *Operator) Verify(context.Context) (job.Verification, error) {
	return job.Verification{Index: 42, Digests: []job.NodeDigest{
		{ID: "n1", Digest: "a1b2"}, {ID: "n2", Digest: "a1b2"}, {ID: "n3", Error: "no answer in time"},
	}}, o.Err
}

// LeaderAddress implements api.Operator.
func (o *Operator) LeaderAddress() string {
	if len(o.NotReady) > 0 {
		return ""
	}
	return o.Leader
}

// Readiness implements api.Operator.
func (o *Operator) Readiness() job.Readiness {
	if len(o.NotReady) > 0 {
		return job.Readiness{Reasons: o.NotReady}
	}
	return job.Readiness{Ready: true, Leader: "n1"}
}
