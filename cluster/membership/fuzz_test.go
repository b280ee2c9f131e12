package membership

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
)

// A node that is starting replies to every call of another node. It promises itself only
// to a configuration that has the expected size and includes it.
func FuzzQuestions(f *testing.F) {
	for kind, m := range []proto.Message{
		&memberpb.StatusRequest{ServerId: "n2.x"},
		&memberpb.PromiseRequest{ServerId: "n2.x", Expect: 3, Members: []string{"n1.x", "n2.x", "n3.x"}},
		&memberpb.InviteRequest{ServerId: "n2.x", ClusterId: "c", Invited: "n1.x"},
		&memberpb.RemoveRequest{Id: "n1"},
		&memberpb.TransferRequest{Id: "n2"},
	} {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(uint8(kind), b)
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		m := bare(t)
		s := &server{m: m}
		ctx := context.Background()
		var err error
		switch kind % 5 {
		case 0:
			if q := new(memberpb.StatusRequest); proto.Unmarshal(data, q) == nil {
				_, err = s.Status(ctx, q)
			}
		case 1:
			q := new(memberpb.PromiseRequest)
			if proto.Unmarshal(data, q) != nil {
				return
			}
			var a *memberpb.PromiseResponse
			a, err = s.Promise(ctx, q)
			require.NoError(t, err)
			if a.Granted {
				require.Len(t, q.Members, m.cfg.Expect)
				require.Contains(t, q.Members, m.cfg.ServerID)
			}
		case 2:
			if q := new(memberpb.InviteRequest); proto.Unmarshal(data, q) == nil {
				_, err = s.Invite(ctx, q)
			}
		case 3:
			if q := new(memberpb.RemoveRequest); proto.Unmarshal(data, q) == nil {
				_, err = s.Remove(ctx, q)
				require.Error(t, err, "it does not lead")
			}
		case 4:
			if q := new(memberpb.TransferRequest); proto.Unmarshal(data, q) == nil {
				_, err = s.Transfer(ctx, q)
				require.Error(t, err, "it does not lead")
			}
		}
		if kind%5 < 3 {
			require.NoError(t, err)
		}
	})
}

// Gossip records make a first configuration only if there are as many nodes as expected,
// each once, and this node is the first.
func FuzzProposal(f *testing.F) {
	f.Add("n1", "n2", "n3", uint32(3), uint32(3), "")
	f.Add("n1", "n2", "n2", uint32(3), uint32(3), "")
	f.Add("n1", "", "n3", uint32(1<<31), uint32(1), "c")
	f.Fuzz(func(t *testing.T, a, b, c string, expect, others uint32, cluster string) {
		if expect == 0 || expect > 9 {
			return // such a node never asks, or does not start
		}
		meta := func(id string, n uint32) gossip.Meta {
			return gossip.Meta{NodeID: id, ServerID: id + ".x", Expect: n, Protocol: protocol}
		}
		self := meta(a, expect)
		live := []gossip.Member{{Meta: self}, {Meta: meta(b, others)}, {Meta: meta(c, expect)}}
		live[1].ClusterID = cluster
		members, why := proposal(self, live)
		if why != "" {
			require.Empty(t, members)
			return
		}
		require.Len(t, members, int(expect))
		require.Equal(t, self.ServerID, members[0].ServerID)
		seen := map[string]bool{}
		for _, m := range members {
			require.False(t, seen[m.ServerID])
			seen[m.ServerID] = true
		}
	})
}
