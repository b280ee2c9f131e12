package apitest

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"tarry/cluster/report"
	"tarry/job"
	"tarry/job/jobpb"
)

// Operator is a fake cluster of three nodes.
type Operator struct {
	mu    sync.Mutex
	calls []string
	// Err, if set, is the error of every call.
	Err error
	// NotReady, if set, is why the node cannot serve.
	NotReady []string
	// Change changes the members, if it is set.
	Change func([]*report.Member) []*report.Member
	// Problems, if set, are those of the cluster's health.
	Problems []*report.Problem
	// Backups, if set, are the scheduled backups.
	Backups *report.ScheduledBackups
	// HTTP has addresses of nodes by their ids, instead of those of hosts that do not exist.
	HTTP map[string]string
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
func (o *Operator) Members(context.Context) ([]*report.Member, error) {
	if o.Err != nil {
		return nil, o.Err
	}
	list := []*report.Member{
		{Id: "n1", Address: "host1:7301", HttpAddress: "host1:7300", Role: "leader", Voter: true, Alive: true, AppliedIndex: 42, DiskFreeBytes: 120 << 30, Version: "v0.1.0", ClusterVersion: 1, MinVersion: 1, MaxVersion: 2},
		{Id: "n2", Address: "host2:7301", HttpAddress: "host2:7300", Role: "follower", Voter: true, Alive: true, AppliedIndex: 41, Lag: 1, DiskFreeBytes: 900 << 20, DiskLow: true, Version: "v0.1.0", ClusterVersion: 1, MinVersion: 1, MaxVersion: 2},
		{Id: "n3", Address: "host3:7301", Role: "follower", Voter: true},
	}
	for i, m := range list {
		if at, ok := o.HTTP[m.Id]; ok {
			list[i].HttpAddress = at
		}
	}
	if o.Change != nil {
		list = o.Change(list)
	}
	return list, nil
}

// Health implements api.Operator.
func (o *Operator) Health(context.Context) (*report.Health, error) {
	h := &report.Health{ClusterVersion: 1, Upgrade: "version 2 waits for n3, which does not answer", Problems: o.Problems}
	if o.Problems == nil {
		h.Problems = []*report.Problem{report.NewProblem(report.NodeDown, "n3", "n3 is not alive: gossip has no sign of it")}
	}
	h.Conclude()
	return h, o.Err
}

// Clocks implements api.Operator.
func (o *Operator) Clocks(context.Context) (*report.Clocks, error) {
	return &report.Clocks{
		MaxOffsetUs: 5_000_000, Agreed: true, MajorityUs: 1_700_000_000_000_000, ClusterAheadUs: 12_000,
		Nodes: []*report.NodeClock{
			{Id: "n1", Voter: true, Known: true, OffsetUs: time.Hour.Microseconds(), WithinUs: 2000, Off: true},
			{Id: "n2", Voter: true, Known: true},
			{Id: "n3", Voter: true},
		},
	}, o.Err
}

// About describes a node.
func About() job.About {
	return job.About{
		ID: "n1", Release: "v0.1.0", Revision: "0a1b2c3", Go: "go1.26", Platform: "linux/amd64", Started: time.UnixMilli(1_700_000_000_000),
		StoreFormat: 10, WireVersion: 5, BackupFormat: 1, Runs: job.Versions{Min: 1, Max: 2},
		Settings: []job.NodeSetting{{Name: "http-addr", Value: "127.0.0.1:7300"}, {Name: "log-level", Value: "info"}, {Name: "push-allow", Hidden: true}},
	}
}

// Events implements api.Operator.
func (o *Operator) Events(after uint64) []job.ClusterEvent {
	at := time.UnixMilli(1_700_000_000_000)
	list := []job.ClusterEvent{
		{Number: 1, At: at, Kind: "leader", Level: "info", Text: "leader changed", Details: []job.EventDetail{{Name: "leader", Value: "n1"}}},
		{Number: 2, At: at.Add(time.Minute), Kind: "member", Level: "warn", Text: "member has stopped or cannot be reached",
			Details: []job.EventDetail{{Name: "member", Value: "n3"}, {Name: "address", Value: "host3:7301"}}},
	}
	return list[min(after, 2):]
}

// SetDrained implements api.Operator.
func (o *Operator) SetDrained(_ context.Context, drained bool) error {
	return o.call("drain", strconv.FormatBool(drained))
}

// ResetClock implements api.Operator.
func (o *Operator) ResetClock(context.Context) error { return o.call("reset clock") }

// Keyring implements api.Operator.
func (o *Operator) Keyring(context.Context) (*report.Keyring, error) {
	return keyring("", oldKey, newKey), o.Err
}

// oldKey and newKey are fingerprints.
const oldKey, newKey = "0a1b2c3d4e5f6071", "8090a0b0c0d0e0f0"

// keyring is that of a cluster with a node that is away.
func keyring(changed string, keys ...string) *report.Keyring {
	ring := &report.RingState{Revision: 4, Fingerprints: keys}
	return &report.Keyring{Ring: ring, Changed: changed, Nodes: []*report.NodeRing{
		{Id: "n1", Ring: ring}, {Id: "n2", Ring: ring}, {Id: "n3", Error: "it does not reply; it fetches the keys when it is back"},
	}}
}

// ChangeKeyring implements api.Operator.
func (o *Operator) ChangeKeyring(_ context.Context, change report.KeyringChange, key string) (*report.Keyring, error) {
	err := o.call("keyring", strconv.Itoa(int(change)), key)
	switch change {
	case report.KeyringChange_INSTALL:
		return keyring(newKey, oldKey, newKey), err
	case report.KeyringChange_USE:
		return keyring(key, newKey, oldKey), err
	}
	return keyring(key, newKey), err
}

// TransferLeadership implements api.Operator.
func (o *Operator) TransferLeadership(_ context.Context, id string) error {
	return o.call("transfer", id)
}

// RemoveMember implements api.Operator.
func (o *Operator) RemoveMember(_ context.Context, id string) error { return o.call("remove", id) }

// Sharding implements api.Operator.
func (o *Operator) Sharding() job.Sharding {
	return job.Sharding{Shards: 1, Groups: []job.Group{{Leader: "n1", Address: "n1:7300", Term: 3}}}
}

// RemovedNodes implements api.Operator.
func (o *Operator) RemovedNodes(context.Context) ([]*report.RemovedNode, error) {
	return []*report.RemovedNode{{Id: "n4", AtMs: 1_700_000_000_000}}, o.Err
}

// AdmitNode implements api.Operator.
func (o *Operator) AdmitNode(_ context.Context, id string) error { return o.call("admit", id) }

// AdmissionMode implements api.Operator.
func (o *Operator) AdmissionMode() jobpb.AdmissionMode { return jobpb.AdmissionMode_ADMISSION_OPEN }

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

// Backup implements api.Operator. Its backup is a text.
func (o *Operator) Backup(_ context.Context, to io.Writer, b job.BackupOptions) error {
	if o.Err != nil {
		return o.Err
	}
	since := ""
	if b.Base != nil {
		since = fmt.Sprintf(", since %s with %d files of the store %s", b.Base.ID, len(b.Base.Files), b.Base.Store)
	}
	_, err := fmt.Fprintf(to, "a backup at %d bytes a second, stale %t%s\n", b.Rate, b.Stale, since)
	return err
}

// Restore implements api.Operator. It takes any text for a backup.
func (o *Operator) Restore(_ context.Context, from io.Reader, r job.RestoreOptions) (job.Replaced, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return job.Replaced{}, err
	}
	if err := o.call("restore", string(text), fmt.Sprintf("%+v", r)); err != nil {
		return job.Replaced{}, err
	}
	at := time.UnixMilli(1_700_000_000_000)
	done := job.Replaced{
		BackupCluster: "k3vq", BackupIndex: 17, BackupTime: at.Add(-24 * time.Hour), Index: 43,
		Before: job.JobCounts{Topics: 2, Delayed: 3, Ready: 4, Reserved: 1}, After: job.JobCounts{Topics: 1, Delayed: 3, Ready: 2}, Tokens: 1,
	}
	if r.DryRun {
		done.Index = 0
	}
	return done, nil
}

// Log implements api.Operator. Its log is a text.
func (o *Operator) Log(_ context.Context, to job.LogWriter, l job.LogOptions) error {
	if o.Err != nil {
		return o.Err
	}
	if _, err := fmt.Fprintf(to, "the log of %s after %d of term %d\n", l.ClusterID, l.After, l.Term); err != nil {
		return err
	}
	return to.Flush()
}

// Standby implements api.Operator. It is a standby that is 3 entries behind.
func (o *Operator) Standby(context.Context) (*report.Standby, error) {
	return &report.Standby{
		Mode: jobpb.StandbyMode_STANDBY_FOLLOWING, Primary: "k3vq7zr2", Index: 48_210, Term: 3, PrimaryIndex: 48_213,
		LastContactMs: 1_700_000_000_400, CaughtUpMs: 1_700_000_000_000, NowMs: 1_700_000_000_500, Connected: true, Source: "http://n1:7300",
	}, o.Err
}

// PromoteStandby implements api.Operator.
func (o *Operator) PromoteStandby(ctx context.Context, force bool) (*report.Standby, error) {
	s, _ := o.Standby(ctx)
	s.Connected, s.Source = false, ""
	return s, o.call("promote", strconv.FormatBool(force))
}

// ScheduledBackups implements api.Operator.
func (o *Operator) ScheduledBackups(context.Context) *report.ScheduledBackups {
	if o.Backups != nil {
		return o.Backups
	}
	const at = 1_700_000_000_000
	return &report.ScheduledBackups{
		Backups: []*report.ScheduledBackup{
			{Name: "tarry-20231114T221300Z-000000000042.backup", Index: 42, InstantMs: at - 20_000, TakenMs: at - 19_000, Bytes: 48_213, Base: "tarry-20231113T221300Z-000000000031.backup", Nodes: []string{"n1", "n2"}},
			{Name: "tarry-20231113T221300Z-000000000017.backup", Index: 17, InstantMs: at - 86_420_000, Bytes: 512, Problem: "the backup is damaged: it ends early, as after an interrupted copy", Nodes: []string{"n2"}},
		},
		Nodes: []*report.NodeBackups{{Id: "n1", Scheduled: true}, {Id: "n2", Scheduled: true, More: 3}, {Id: "n3", Error: "it does not reply"}},
	}
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
