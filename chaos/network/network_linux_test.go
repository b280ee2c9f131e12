package network

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build returns a network whose nodes reach each other, or skips the test with the reason if
// there can be none. The kernel may need a second until new links carry packets.
func build(t *testing.T, ids ...string) *Network {
	if err := Available(); err != nil {
		t.Skipf("SKIPPED, nothing of the network was tested: %v", err)
	}
	n, err := New(t.Context(), ids...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	end := time.Now().Add(patience)
	for _, from := range ids {
		for _, to := range ids {
			for from != to && n.passes(t, from, to, readyPort) < 10 {
				require.True(t, time.Now().Before(end), "%s does not reach %s", from, to)
			}
		}
	}
	return n
}

const (
	echoPort  = 9001 // UDP and TCP
	readyPort = 9009
	patience  = 20 * time.Second
	// silence is how long a test waits for packets that must not arrive.
	silence = 400 * time.Millisecond
)

// receiver counts numbered UDP packets on a node.
type receiver struct {
	t    *testing.T
	conn net.PacketConn
}

func (n *Network) listen(t *testing.T, id string, port int) *receiver {
	r := &receiver{t: t}
	require.NoError(t, inside(n.slot.namespace(id), func() (err error) {
		r.conn, err = net.ListenPacket("udp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(port)))
		return err
	}))
	t.Cleanup(func() { r.conn.Close() })
	return r
}

// got reads packets until there are most, or none arrives for a while.
func (r *receiver) got(most int) (numbers []uint32, at []time.Time) {
	buffer := make([]byte, 2048)
	for len(numbers) < most {
		began := time.Now()
		require.NoError(r.t, r.conn.SetReadDeadline(began.Add(silence)))
		size, _, err := r.conn.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if time.Since(began) > silence+silence/8 {
				continue // the machine was too busy to run this test, so that was no silence
			}
			break
		}
		require.NoError(r.t, err)
		require.GreaterOrEqual(r.t, size, 4)
		numbers, at = append(numbers, binary.BigEndian.Uint32(buffer)), append(at, time.Now())
	}
	return numbers, at
}

// send sends count numbered packets of size bytes from one node to an address,
// from port to port.
func (n *Network) send(t *testing.T, from, host string, port, count, size int) (at []time.Time) {
	var c net.Conn
	require.NoError(t, inside(n.slot.namespace(from), func() (err error) {
		c, err = net.Dial("udp4", net.JoinHostPort(host, strconv.Itoa(port)))
		return err
	}))
	defer c.Close()
	data := make([]byte, size)
	for i := range count {
		binary.BigEndian.PutUint32(data, uint32(i))
		at = append(at, time.Now())
		if _, err := c.Write(data); err != nil {
			require.ErrorContains(t, err, "refused") // by a reply to an earlier packet
		}
	}
	return at
}

// passes reports how many of ten packets arrive.
func (n *Network) passes(t *testing.T, from, to string, port int) int {
	r := n.listen(t, to, port)
	defer r.conn.Close()
	n.send(t, from, n.PeerHost(to), port, 10, 100)
	numbers, _ := r.got(10)
	return len(numbers)
}

func (n *Network) harm(t *testing.T, rules ...Rule) (heal func()) {
	h, err := n.Apply(t.Context(), rules...)
	require.NoError(t, err)
	return func() { require.NoError(t, h()) }
}

func TestDroppingOneDirectionLeavesTheOther(t *testing.T) {
	n := build(t, "n1", "n2", "n3")
	heal := n.harm(t, Rule{From: []string{"n1"}, To: []string{"n2"}, Loss: 1})
	require.Zero(t, n.passes(t, "n1", "n2", echoPort))
	require.Equal(t, 10, n.passes(t, "n2", "n1", echoPort))
	require.Equal(t, 10, n.passes(t, "n1", "n3", echoPort))
	heal()
	require.Equal(t, 10, n.passes(t, "n1", "n2", echoPort))
}

func TestEffectsAddUpAndHealOneByOne(t *testing.T) {
	n := build(t, "n1", "n2", "n3")
	first := n.harm(t, Rule{From: []string{"n1"}, To: []string{"n2"}, Loss: 1})
	second := n.harm(t, Rule{From: []string{"n1", "n2", "n3"}, To: []string{"n1", "n2", "n3"}, Loss: 1})
	first()
	require.Zero(t, n.passes(t, "n1", "n2", echoPort), "the second still holds")
	second()
	require.Equal(t, 10, n.passes(t, "n1", "n2", echoPort))
	second() // the second call does nothing
	_, err := n.Apply(t.Context(), Rule{From: []string{"n1"}, To: []string{"n9"}, Loss: 1})
	require.ErrorContains(t, err, "n9")
}

func TestAGivenAddressLeadsToItsNewNode(t *testing.T) {
	n := build(t, "n1", "n2", "n3")
	arrives := func(at string) int {
		r := n.listen(t, at, echoPort)
		defer r.conn.Close()
		n.send(t, "n3", n.PeerHost("n1"), echoPort, 10, 100)
		numbers, _ := r.got(10)
		return len(numbers)
	}
	require.Equal(t, 10, arrives("n1"))
	back, err := n.Inherit(t.Context(), "n1", "n2")
	require.NoError(t, err)
	require.Equal(t, 10, arrives("n2"))
	require.Equal(t, 10, n.passes(t, "n3", "n2", echoPort), "it keeps its own")
	require.NoError(t, back())
	require.Equal(t, 10, arrives("n1"))
	require.Zero(t, arrives("n2"))
	_, err = n.Inherit(t.Context(), "n1", "n9")
	require.ErrorContains(t, err, "n9")
}

func TestDroppingByPort(t *testing.T) {
	n := build(t, "n1", "n2")
	both := []string{"n1", "n2"}
	heal := n.harm(t, Rule{From: both, To: both, Ports: []int{echoPort, 9005}, Loss: 1})
	require.Zero(t, n.passes(t, "n1", "n2", echoPort))
	require.Equal(t, 10, n.passes(t, "n1", "n2", 9002))
	heal()
	require.Equal(t, 10, n.passes(t, "n1", "n2", echoPort))
}

func TestClientsReachNodesThatAreCutOff(t *testing.T) {
	n := build(t, "n1", "n2")
	both := []string{"n1", "n2"}
	n.harm(t, Rule{From: both, To: both, Loss: 1})
	r := n.listen(t, "n1", echoPort)
	client := func() int {
		c, err := net.Dial("udp4", net.JoinHostPort(n.Host("n1"), strconv.Itoa(echoPort)))
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write(make([]byte, 4))
		require.NoError(t, err)
		numbers, _ := r.got(1)
		return len(numbers)
	}
	require.Equal(t, 1, client())
	heal := n.harm(t, Rule{From: []string{Clients}, To: []string{"n1"}, Loss: 1})
	require.Zero(t, client())
	heal()
	require.Equal(t, 1, client())
}

func TestTCPStallsAndContinues(t *testing.T) {
	n := build(t, "n1", "n2")
	both := []string{"n1", "n2"}
	var l net.Listener
	require.NoError(t, inside(n.slot.namespace("n2"), func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(echoPort)))
		return err
	}))
	defer l.Close()
	dial := func(patience time.Duration) (c net.Conn, err error) {
		err = inside(n.slot.namespace("n1"), func() (err error) {
			c, err = net.DialTimeout("tcp4", net.JoinHostPort(n.PeerHost("n2"), strconv.Itoa(echoPort)), patience)
			return err
		})
		return c, err
	}
	c, err := dial(patience)
	require.NoError(t, err)
	defer c.Close()
	far, err := l.Accept()
	require.NoError(t, err)
	defer far.Close()

	heal := n.harm(t, Rule{From: both, To: both, Loss: 1})
	_, err = dial(silence)
	timeout, ok := errors.AsType[net.Error](err)
	require.True(t, ok && timeout.Timeout(), "a black hole, not a refusal: %v", err)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err, "the sender does not know")
	buffer := make([]byte, 1)
	require.NoError(t, far.SetReadDeadline(time.Now().Add(silence)))
	_, err = far.Read(buffer)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	heal()
	require.NoError(t, far.SetReadDeadline(time.Now().Add(patience)))
	_, err = far.Read(buffer)
	require.NoError(t, err, "TCP sent it again")
}

func TestConnectionsAreResetAndRefused(t *testing.T) {
	n := build(t, "n1", "n2")
	both := []string{"n1", "n2"}
	var l net.Listener
	require.NoError(t, inside(n.slot.namespace("n2"), func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(echoPort)))
		return err
	}))
	defer l.Close()
	dial := func() (c net.Conn, err error) {
		err = inside(n.slot.namespace("n1"), func() (err error) {
			c, err = net.DialTimeout("tcp4", net.JoinHostPort(n.PeerHost("n2"), strconv.Itoa(echoPort)), patience)
			return err
		})
		return c, err
	}
	c, err := dial()
	require.NoError(t, err)
	defer c.Close()
	heal := n.harm(t, Rule{From: both, To: both, Reset: 1})
	_, err = dial()
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, 10, n.passes(t, "n1", "n2", echoPort), "UDP has no connections")
	heal()
	again, err := dial()
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestNamesFail(t *testing.T) {
	var s names
	s.set(map[string]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1")})
	query := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName("n1."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}
	data, err := query.Pack()
	require.NoError(t, err)
	for how, want := range map[Outage]dnsmessage.RCode{
		0: dnsmessage.RCodeSuccess, Failing: dnsmessage.RCodeServerFailure, Forgetful: dnsmessage.RCodeNameError,
	} {
		s.fail(how)
		reply, err := s.answer(data)
		require.NoError(t, err)
		var m dnsmessage.Message
		require.NoError(t, m.Unpack(reply))
		require.Equal(t, want, m.RCode)
		require.Equal(t, how == 0, len(m.Answers) == 1)
	}
	s.fail(Silent)
	reply, err := s.answer(data)
	require.NoError(t, err)
	require.Nil(t, reply)
}

func TestLossAndDuplicationAreShares(t *testing.T) {
	n := build(t, "n1", "n2")
	r := n.listen(t, "n2", echoPort)
	const count = 1000
	for name, c := range map[string]struct {
		rule        Rule
		least, most int
	}{
		"nothing":     {Rule{}, count, count},
		"30 % lost":   {Rule{Loss: 0.3}, 600, 800},
		"half double": {Rule{Duplicate: 0.5}, 1400, 1600},
		"all double":  {Rule{Duplicate: 1}, 2 * count, 2 * count},
	} {
		t.Run(name, func(t *testing.T) {
			c.rule.From, c.rule.To = []string{"n1"}, []string{"n2"}
			heal := n.harm(t, c.rule)
			defer heal()
			arrived := 0
			const batch = 100 // as many as fit in a socket's buffer
			for range count / batch {
				n.send(t, "n1", n.PeerHost("n2"), echoPort, batch, 20)
				numbers, _ := r.got(3 * batch)
				arrived += len(numbers)
			}
			require.GreaterOrEqual(t, arrived, c.least)
			require.LessOrEqual(t, arrived, c.most)
		})
	}
}

func TestDelayedPacketsArriveLateAndInOrder(t *testing.T) {
	n := build(t, "n1", "n2")
	r := n.listen(t, "n2", echoPort)
	const count = 100
	arrive := func(rule Rule) (numbers []uint32, least time.Duration) {
		rule.From, rule.To = []string{"n1"}, []string{"n2"}
		heal := n.harm(t, rule)
		defer heal()
		sent := n.send(t, "n1", n.PeerHost("n2"), echoPort, count, 200)
		numbers, at := r.got(count)
		require.Len(t, numbers, count)
		least = time.Hour
		for i, number := range numbers {
			least = min(least, at[i].Sub(sent[number]))
		}
		return numbers, least
	}
	numbers, least := arrive(Rule{Delay: 100 * time.Millisecond, Jitter: 20 * time.Millisecond})
	require.Zero(t, overtaken(numbers))
	require.GreaterOrEqual(t, least, 80*time.Millisecond)

	numbers, least = arrive(Rule{Delay: 20 * time.Millisecond, Reorder: 0.3})
	require.Greater(t, overtaken(numbers), 5)
	t.Logf("not delayed, but through the queue: %v", least)

	numbers, _ = arrive(Rule{})
	require.Zero(t, overtaken(numbers))
}

func TestLowBandwidth(t *testing.T) {
	n := build(t, "n1", "n2")
	r := n.listen(t, "n2", echoPort)
	heal := n.harm(t, Rule{From: []string{"n1"}, To: []string{"n2"}, Rate: 40_000})
	sent := n.send(t, "n1", n.PeerHost("n2"), echoPort, 100, 1000)
	numbers, at := r.got(100)
	heal()
	require.Less(t, len(numbers), 60, "one second's worth waits, the rest is dropped")
	require.Greater(t, len(numbers), 30)
	rate := float64(1028*(len(numbers))) / at[len(at)-1].Sub(sent[0]).Seconds()
	require.LessOrEqual(t, rate, 40_000.0*1.01)
}

func TestHealingLetsDelayedPacketsArrive(t *testing.T) {
	n := build(t, "n1", "n2")
	r := n.listen(t, "n2", echoPort)
	heal := n.harm(t, Rule{From: []string{"n1"}, To: []string{"n2"}, Delay: time.Hour})
	n.send(t, "n1", n.PeerHost("n2"), echoPort, 10, 100)
	numbers, _ := r.got(10)
	require.Empty(t, numbers)
	n.harm(t, Rule{From: []string{"n1"}, To: []string{"n2"}, Ports: []int{9002}, Loss: 1}) // loses none of them
	heal()
	numbers, _ = r.got(10)
	require.Len(t, numbers, 10)
}

func TestReaddressedNodesReachEachOtherByName(t *testing.T) {
	n := build(t, "n1", "n2", "n3")
	resolve := func(in, name string) string {
		p := n.Prefix(in)
		out, err := exec.Command(p[0], append(p[1:], "getent", "hosts", name)...).Output()
		require.NoError(t, err)
		return strings.Fields(string(out))[0]
	}
	require.Equal(t, n.PeerHost("n2"), resolve("n1", "n2"))
	clients := n.Host("n2")
	cut := n.harm(t, Rule{From: []string{"n1"}, To: []string{"n3"}, Loss: 1})
	for _, m := range []Move{Fresh, Rotate, Fresh} {
		old := map[string]string{}
		for _, id := range n.Nodes() {
			old[id] = n.PeerHost(id)
		}
		require.NoError(t, n.Readdress(t.Context(), m))
		for _, id := range n.Nodes() {
			require.NotEqual(t, old[id], n.PeerHost(id))
			require.Equal(t, n.PeerHost(id), resolve("n1", id))
		}
		require.Equal(t, m == Rotate, n.PeerHost("n1") == old["n2"])
		require.Equal(t, 10, n.passes(t, "n1", "n2", echoPort))
		require.Zero(t, n.passes(t, "n1", "n3", echoPort), "faults follow the nodes")
		require.Equal(t, clients, n.Host("n2"))
	}
	cut()
	require.Equal(t, 10, n.passes(t, "n1", "n3", echoPort))
}

func TestCloseRemovesEverything(t *testing.T) {
	n := build(t, "n1", "n2")
	other := build(t, "n1", "n2")
	require.NotEqual(t, n.slot.number, other.slot.number)
	base, device := n.slot.base(), n.slot.device()
	// A killed run loses its lock and removes nothing.
	require.NoError(t, n.names.close()) // its goroutines end with it
	require.NoError(t, n.slot.unlock())
	names, err := matching(namespaceDir, base)
	require.NoError(t, err)
	require.Len(t, names, 3)

	next := build(t, "n1")
	require.NotEqual(t, other.slot.number, next.slot.number, "a living run keeps its own")
	require.Equal(t, n.slot.number, next.slot.number)
	require.Equal(t, 10, other.passes(t, "n1", "n2", echoPort))
	require.NoError(t, next.Close())
	n.closed = true // its leftovers are gone already

	names, err = matching(namespaceDir, base)
	require.NoError(t, err)
	require.Empty(t, names)
	names, err = matching(resolverDir, base)
	require.NoError(t, err)
	require.Empty(t, names)
	_, err = net.InterfaceByName(device)
	require.Error(t, err)
}

func TestAFailedStartLeavesNothing(t *testing.T) {
	n := build(t, "n1") // to skip where nothing can be built
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := New(ctx, "n1")
	require.Error(t, err)
	names, err := filepath.Glob(filepath.Join(namespaceDir, "tarry*"))
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(p string) bool { return !strings.Contains(p, n.slot.base()) })
	require.Len(t, names, 2, "only those of the network that stands")
	for _, bad := range []string{"", "n1", "N1", "-n", Clients, hub} {
		require.Error(t, n.Add(t.Context(), bad), bad)
	}
	require.NoError(t, n.Add(t.Context(), "n2"))
	require.Equal(t, 10, n.passes(t, "n1", "n2", echoPort))
}
