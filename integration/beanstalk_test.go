package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/beanstalk/conformance"
	"tarry/bench/localcluster"
)

// TestBeanstalkdProtocolOfTheBinary runs the conformance suite through a follower
// of a cluster of processes.
func TestBeanstalkdProtocolOfTheBinary(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	conformance.Run(t, conformance.Target{Addr: c.follower().Beanstalk, Tarry: true})
	c.requireEqualDigests(c.leader(), 3)
}

// TestLifeOfABeanstalkdNode runs the cases that a real beanstalkd passes when it is
// drained, limited and killed.
func TestLifeOfABeanstalkdNode(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]int{"one node": 1, "a follower of three": 3} {
		t.Run(name, func(t *testing.T) {
			conformance.RunLife(t, func(t *testing.T, s conformance.Settings) conformance.Server {
				var args []string
				if s.MaxJobSize > 0 {
					args = []string{"--beanstalk-max-job-size", fmt.Sprint(s.MaxJobSize)}
				}
				c := startCluster(t, nodes, args...)
				if nodes == 1 {
					return ownServer{c, c.leader()}
				}
				return ownServer{c, c.follower()}
			})
		})
	}
}

// ownServer is a cluster seen through one of its nodes.
type ownServer struct {
	*cluster
	node *localcluster.Node
}

func (s ownServer) Addr() string { return s.node.Beanstalk }

func (s ownServer) Drain() error { return syscall.Kill(s.node.PID(), syscall.SIGUSR1) }

// Restart kills all nodes.
func (s ownServer) Restart() error {
	for _, n := range s.Nodes() {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes() {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return s.WaitReady(s.t.Context(), s.Nodes()...)
}

// tubeClient speaks the protocol by hand.
type tubeClient struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dialTubes(t *testing.T, n *localcluster.Node) *tubeClient {
	t.Helper()
	conn, err := net.Dial("tcp", n.Beanstalk)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &tubeClient{t, conn, bufio.NewReader(conn)}
}

func (c *tubeClient) send(lines ...string) {
	c.t.Helper()
	_, err := io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n")
	require.NoError(c.t, err)
}

func (c *tubeClient) reply() string {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
	line, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSuffix(line, "\r\n")
}

func (c *tubeClient) ask(lines ...string) string {
	c.t.Helper()
	c.send(lines...)
	return c.reply()
}

// TestBeanstalkdWaitSurvivesTheLeader: a reserve through a follower goes on while
// the leader dies, and the job comes back when its client closes.
func TestBeanstalkdWaitSurvivesTheLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	through := c.follower()
	waiting := dialTubes(t, through)
	waiting.send("reserve")
	c.until(func() error {
		var stats string
		observer := dialTubes(t, through)
		defer observer.Close()
		observer.send("stats-tube default")
		var size int
		_, err := fmt.Sscanf(observer.reply(), "OK %d", &size)
		require.NoError(t, err)
		body := make([]byte, size)
		_, err = io.ReadFull(observer.in, body)
		require.NoError(t, err)
		if stats = string(body); !strings.Contains(stats, "current-waiting: 1\n") {
			return fmt.Errorf("nobody waits yet: %s", stats)
		}
		return nil
	})
	require.NoError(t, c.leader().Kill())

	producer := dialTubes(t, through)
	c.until(func() error {
		if got := producer.ask("put 0 0 600 1", "x"); !strings.HasPrefix(got, "INSERTED ") {
			return fmt.Errorf("the put was answered %q", got)
		}
		return nil
	})
	var id, size int
	_, err := fmt.Sscanf(waiting.reply(), "RESERVED %d %d", &id, &size)
	require.NoError(t, err)
	require.Equal(t, "x", waiting.reply())
	require.NoError(t, waiting.Close())

	var again int
	_, err = fmt.Sscanf(producer.ask("reserve"), "RESERVED %d %d", &again, &size)
	require.NoError(t, err)
	require.Equal(t, "x", producer.reply())
	require.Equal(t, "DELETED", producer.ask(fmt.Sprintf("delete %d", again)))
}

// TestBeanstalkdAndHTTPSeeOneQueue: jobs go in by one and come out by the other.
func TestBeanstalkdAndHTTPSeeOneQueue(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	node := c.Nodes()[0]
	client := dialTubes(t, node)
	c.tarry("add", "--topic", "default", "--id", "text", "plain text")
	c.tarry("add", "--topic", "default", "--id", "json", "--body-json", `{"a":1}`)
	require.Equal(t, "RESERVED 1 10", client.ask("reserve"))
	require.Equal(t, "plain text", client.reply())
	require.Equal(t, "RESERVED 2 7", client.ask("reserve"))
	require.Equal(t, `{"a":1}`, client.reply())
	require.Equal(t, "INSERTED 3", client.ask("put 5 0 9 5", "hello"))
	var got struct {
		Seq      uint64
		Body     string
		Priority uint32
	}
	require.NoError(t, c.Call(t.Context(), http.MethodGet, node, "/v1/jobs/$0-3", &got))
	require.Equal(t, "hello", got.Body)
	require.EqualValues(t, 3, got.Seq)
	require.EqualValues(t, 5, got.Priority)
}
