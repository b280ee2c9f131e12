package stranger

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func all() []Attack {
	return slices.Concat(ClusterPort(), GossipPort(), HTTPPort(), BeanstalkdPort())
}

func TestNamesOfAttacksDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range all() {
		require.False(t, seen[a.Name], a.Name)
		seen[a.Name] = true
		require.NotNil(t, a.Run)
	}
}

// listen accepts connections and packets, and replies to each with words.
func listen(t *testing.T, words string) (addr string, taken *atomic.Int64) {
	taken = new(atomic.Int64)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			go func() {
				defer c.Close()
				if _, err := io.WriteString(c, words); err == nil {
					io.Copy(io.Discard, c)
				}
			}()
		}
	}()
	return l.Addr().String(), taken
}

func TestACrowdConnectsAndDisconnects(t *testing.T) {
	addr, taken := listen(t, "")
	s := &Stranger{From: "127.0.0.1"}
	s.crowd(t.Context(), addr, slices.Repeat([][]byte{[]byte("half of a ")}, 50), []byte("x"), dripEvery+100*time.Millisecond)
	require.EqualValues(t, 50, taken.Load())
	// goleak checks that none of its goroutines remains.
}

func TestAttacksOnAClosedPortEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	s := &Stranger{Target: Node{addr, addr, addr, addr}, Rand: rand.New(rand.NewPCG(1, 1))}
	for _, a := range all() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := a.Run(ctx, s); err != nil {
			require.NotErrorAs(t, err, new(Believed), a.Name)
		}
		cancel()
	}
}

func TestAnAcceptedForgeryIsReported(t *testing.T) {
	for _, c := range []struct{ attack, answer string }{
		{"http-wrong-host", "HTTP/1.1 200 OK\r\n\r\n"},
		{"beanstalkd-http", "USING stranger\r\nINSERTED 1\r\n"},
		{"http-deep-json", "HTTP/1.1 400 Bad Request\r\n\r\n" + string(make([]byte, maxRefusal))},
	} {
		t.Run(c.attack, func(t *testing.T) {
			addr, _ := listen(t, c.answer)
			s := &Stranger{Target: Node{addr, addr, addr, addr}, Rand: rand.New(rand.NewPCG(1, 1))}
			at := slices.IndexFunc(all(), func(a Attack) bool { return a.Name == c.attack })
			require.ErrorAs(t, all()[at].Run(t.Context(), s), new(Believed))
		})
	}
}

// Raft's own transport must understand the stranger's messages, or the attacks would be
// garbage.
func TestRaftUnderstandsTheStranger(t *testing.T) {
	trans, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, time.Second, io.Discard)
	require.NoError(t, err)
	defer trans.Close()
	c, err := net.Dial("tcp", string(trans.LocalAddr()))
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(raftMessage(requestVote, &raft.RequestVoteRequest{RPCHeader: claim(), Term: 1 << 40, LeadershipTransfer: true}))
	require.NoError(t, err)
	rpc := <-trans.Consumer()
	require.EqualValues(t, 1<<40, rpc.Command.(*raft.RequestVoteRequest).Term)
	rpc.Respond(&raft.RequestVoteResponse{}, nil)
}

// The same for memberlist: it replies with its records.
func TestMemberlistUnderstandsTheStranger(t *testing.T) {
	config := memberlist.DefaultLocalConfig()
	config.Name, config.BindAddr, config.BindPort, config.LogOutput = "somebody@1", "127.0.0.1", 0, io.Discard
	meta := sayOf("n1", "10.0.0.1:1")
	config.Delegate = known{meta}
	list, err := memberlist.Create(config)
	require.NoError(t, err)
	defer list.Shutdown()
	s := &Stranger{Target: Node{Gossip: list.LocalNode().Address()}}
	nodes, err := s.listen(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	require.Equal(t, "somebody@1", nodes[0].Name)
	forged, err := forge(nodes[0].Meta, map[int]string{addressText: nowhere})
	require.NoError(t, err)
	require.Equal(t, sayOf("n1", nowhere), forged)

	ghost := nodes[0]
	ghost.Name, ghost.Incarnation = "ghost@1", 1
	require.NoError(t, s.say(t.Context(), ghost))
	require.Eventually(t, func() bool { return list.NumMembers() == 2 }, 20*time.Second, 5*time.Millisecond)
}

// sayOf returns a node's record.
func sayOf(id, addr string) []byte {
	b := []byte{1}
	for range metaNumbers {
		b = binary.AppendUvarint(b, 300)
	}
	for _, words := range []string{id, ".1", addr, ":1", "cluster", "v1"} {
		b = append(binary.AppendUvarint(b, uint64(len(words))), words...)
	}
	return append(b, "later fields"...)
}

// known is a delegate with a fixed record.
type known struct{ meta []byte }

func (k known) NodeMeta(int) []byte           { return k.meta }
func (known) NotifyMsg([]byte)                {}
func (known) GetBroadcasts(_, _ int) [][]byte { return nil }
func (known) LocalState(bool) []byte          { return nil }
func (known) MergeRemoteState([]byte, bool)   {}

func TestForgeRefusesATruncatedRecord(t *testing.T) {
	whole := sayOf("n1", "a:1")
	whole = whole[:bytes.Index(whole, []byte("later"))]
	_, err := forge(whole, nil)
	require.NoError(t, err)
	for n := range whole {
		_, err := forge(whole[:n], nil)
		require.Error(t, err, "%d bytes", n)
	}
}
