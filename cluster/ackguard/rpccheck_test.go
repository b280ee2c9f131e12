package ackguard

import (
	"math"
	"net"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/transport"
)

func TestMessagesThatNoServerSendsAreRefused(t *testing.T) {
	const now = 7
	n2 := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("n2.b"), Addr: []byte("n2:7301")}
	n3 := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("n3.c"), Addr: []byte("n3:7301")}
	configuration := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "n2.b", Address: "n2:7301"}}})
	entry := func(index, term uint64) *raft.Log { return &raft.Log{Index: index, Term: term} }
	appends := func(change func(*raft.AppendEntriesRequest)) *raft.AppendEntriesRequest {
		r := &raft.AppendEntriesRequest{RPCHeader: n2, Term: now, PrevLogEntry: 4, PrevLogTerm: 5, Entries: []*raft.Log{
			entry(5, 5), entry(6, 7), {Index: 7, Term: 7, Type: raft.LogConfiguration, Data: configuration},
		}}
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		command any
		ok      bool
	}{
		"append":                   {appends(func(*raft.AppendEntriesRequest) {}), true},
		"append after a year away": {appends(func(r *raft.AppendEntriesRequest) { r.Term = now + maxTermJump }), true},
		"append of an old leader":  {appends(func(r *raft.AppendEntriesRequest) { r.Term, r.Entries, r.PrevLogTerm = 3, nil, 2 }), true},
		"append of the last term":  {appends(func(r *raft.AppendEntriesRequest) { r.Term = math.MaxUint64 }), false},
		"append of no term":        {appends(func(r *raft.AppendEntriesRequest) { r.Term = 0 }), false},
		"append of nobody":         {appends(func(r *raft.AppendEntriesRequest) { r.ID = nil }), false},
		"append with a gap":        {appends(func(r *raft.AppendEntriesRequest) { r.Entries[1].Index = 9 }), false},
		"append with no entry":     {appends(func(r *raft.AppendEntriesRequest) { r.Entries[1] = nil }), false},
		"entry of a later term":    {appends(func(r *raft.AppendEntriesRequest) { r.Entries[2].Term = now + 1 }), false},
		"terms that go back":       {appends(func(r *raft.AppendEntriesRequest) { r.Entries[0].Term = 4 }), false},
		"configuration of garbage": {appends(func(r *raft.AppendEntriesRequest) { r.Entries[2].Data = []byte("garbage") }), false},
		"configuration of nobody": {appends(func(r *raft.AppendEntriesRequest) {
			r.Entries[2].Data = raft.EncodeConfiguration(raft.Configuration{})
		}), false},
		"entry of an old type": {appends(func(r *raft.AppendEntriesRequest) { r.Entries[0].Type = raft.LogAddPeerDeprecated }), false},

		"vote":                      {&raft.RequestVoteRequest{RPCHeader: n2, Term: now + 1}, true},
		"vote in the last term":     {&raft.RequestVoteRequest{RPCHeader: n2, Term: math.MaxUint64}, false},
		"vote for nobody":           {&raft.RequestVoteRequest{Term: now + 1}, false},
		"pre-vote":                  {&raft.RequestPreVoteRequest{RPCHeader: n2, Term: now + 1}, true},
		"pre-vote in the last term": {&raft.RequestPreVoteRequest{RPCHeader: n2, Term: math.MaxUint64}, false},

		"snapshot":                      {&raft.InstallSnapshotRequest{RPCHeader: n2, SnapshotVersion: 1, Term: now, Configuration: configuration}, true},
		"snapshot of another leader":    {&raft.InstallSnapshotRequest{RPCHeader: n3, SnapshotVersion: 1, Term: now, Configuration: configuration}, false},
		"snapshot of the next leader":   {&raft.InstallSnapshotRequest{RPCHeader: n3, SnapshotVersion: 1, Term: now + 1, Configuration: configuration}, true},
		"snapshot of the last term":     {&raft.InstallSnapshotRequest{RPCHeader: n2, SnapshotVersion: 1, Term: math.MaxUint64, Configuration: configuration}, false},
		"snapshot without servers":      {&raft.InstallSnapshotRequest{RPCHeader: n2, SnapshotVersion: 1, Term: now}, false},
		"snapshot of a negative length": {&raft.InstallSnapshotRequest{RPCHeader: n2, SnapshotVersion: 1, Term: now, Size: -1, Configuration: configuration}, false},
		"snapshot of the old version":   {&raft.InstallSnapshotRequest{RPCHeader: n2, Term: now, Configuration: configuration}, false},

		"the leader hands over":     {&raft.TimeoutNowRequest{RPCHeader: n2}, true},
		"this node looks itself":    {&raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ID: []byte("n1.a")}}, true},
		"another hands over":        {&raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ID: []byte("n3.c")}}, false},
		"nobody hands over":         {&raft.TimeoutNowRequest{}, false},
		"a message of another kind": {"hello", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRPC(c.command, now, "n2.b", "n1.a")
			require.Equal(t, c.ok, err == nil, "%v", err)
		})
	}
}

// Each server of a cluster could otherwise vote and lead in the name of the others.
func TestAMessageInTheNameOfAnotherServerIsRefused(t *testing.T) {
	g := newGuard(t)
	configuration := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "n2.b", Address: "n2:7301"}}})
	caller := func(serverID string) net.Addr {
		return &transport.CallerAddr{Addr: new(net.TCPAddr), ServerID: serverID}
	}
	for _, c := range []struct {
		from net.Addr
		id   string // in the message
		ok   bool
	}{
		{caller("n1.a"), "n1.a", true},
		{caller("n2.b"), "n1.a", false},
		{caller("n1.b"), "n1.a", false},
		{caller("n1.a"), "", false},
		{caller(""), "n1.a", false},
		{caller(""), "", false},
		{new(net.TCPAddr), "n1.a", false},
	} {
		header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(c.id), Addr: []byte("n1:7301")}
		for _, command := range []any{
			&raft.AppendEntriesRequest{RPCHeader: header, Term: 1},
			&raft.RequestVoteRequest{RPCHeader: header, Term: 1},
			&raft.RequestPreVoteRequest{RPCHeader: header, Term: 1},
			&raft.InstallSnapshotRequest{RPCHeader: header, Term: 1, SnapshotVersion: raft.SnapshotVersionMax, Configuration: configuration},
			&raft.TimeoutNowRequest{RPCHeader: header},
		} {
			responses := make(chan raft.RPCResponse, 1)
			require.Equal(t, c.ok, g.acceptsRPC(c.from, raft.RPC{Command: command, RespChan: responses}), "%T of %q from %v", command, c.id, c.from)
			if !c.ok {
				require.ErrorContains(t, (<-responses).Error, "refused")
			}
		}
	}
}
