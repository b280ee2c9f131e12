package membership

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/report"
)

// forge sends a node's gossip port the record of another node, as memberlist does: a type
// byte and a structure.
func forge(t *testing.T, to string, record gossip.Meta, at *net.UDPAddr) {
	forgeRun(t, to, record, at, record.ServerID+"@1", 1)
}

// forgeRun is forge for a run of a node, which is a name in gossip.
func forgeRun(t *testing.T, to string, record gossip.Meta, at *net.UDPAddr, name string, incarnation uint32) {
	meta, err := record.Encode()
	require.NoError(t, err)
	packet := bytes.NewBuffer([]byte{4})
	require.NoError(t, codec.NewEncoder(packet, new(codec.MsgpackHandle)).Encode(struct {
		Incarnation uint32
		Node        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Vsn         []uint8
	}{incarnation, name, at.IP.To4(), uint16(at.Port), meta, []uint8{1, 5, 2, 0, 0, 0}}))
	c, err := net.Dial("udp", to)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(packet.Bytes())
	require.NoError(t, err)
}

// The leader asks each node that wants to join, and waits for two seconds for its reply.
func TestNodesThatDoNotReplyDoNotDelayAnother(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	w.noProbes = true // gossip never finds that they are dead
	n1 := w.node("n1", 1)
	n1.conns = newConns() // n2 connects to the others, too, and knows sooner that they do not reply
	t.Cleanup(n1.conns.Close)
	n1.start()
	w.voters("n1")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer udp.Close()
	const ghosts = 60
	eventually(t, "gossip has the nodes that do not exist", func() bool {
		for i := range ghosts {
			id := fmt.Sprint("ghost", i)
			forge(t, n1.gossipAddr(), gossip.Meta{NodeID: id, ServerID: id + ".1", ClusterAddr: silent.Addr().String(), Protocol: protocol, Epoch: 1},
				udp.LocalAddr().(*net.UDPAddr))
		}
		return len(n1.members()) == 1+ghosts
	})
	n2 := w.node("n2", 0, n1.gossipAddr())
	n2.start()
	w.voters("n1", "n2")
	asked := n1.toAsk(n1.others())
	require.Len(t, asked, 1+maxAsked, "what a node asks all others is asked of some strangers only")
	require.True(t, slices.ContainsFunc(asked, func(n gossip.Member) bool { return n.NodeID == "n2" }))
	eventually(t, "the health counts the others in one line", func() bool {
		h, err := n1.Health(context.Background())
		return err == nil && len(h.Reasons) == 2 && h.Problems[1].Kind == string(report.TwoVoters) && strings.HasPrefix(h.Reasons[0], "60 nodes that gossip announces do not reply, among them ghost0, ghost1, ghost10: ")
	})
}
