package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIdleBeanstalkdConnectionsAreCheap holds ten thousand connections to one
// node, first between commands and then in a reserve each, and looks at the
// node's memory.
func TestIdleBeanstalkdConnectionsAreCheap(t *testing.T) {
	t.Parallel()
	const (
		connections = 10_000
		dialers     = 16
		maxRSS      = 500 << 20
	)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Max < connections+1000 {
		t.Skipf("SKIPPED: this process may open %d files; %d connections need more (ulimit -Hn)", limit.Max, connections)
	}
	c := startCluster(t, 1)
	node := c.Nodes()[0]
	before, err := node.RSS()
	require.NoError(t, err)

	conns := make([]net.Conn, connections)
	t.Cleanup(func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	})
	// each runs f for every connection, several at a time.
	each := func(f func(i int) error) {
		t.Helper()
		errs := make([]error, dialers)
		var work sync.WaitGroup
		for d := range dialers {
			work.Go(func() {
				for i := d; i < connections && errs[d] == nil; i += dialers {
					errs[d] = f(i)
				}
			})
		}
		work.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
	each(func(i int) (err error) {
		if conns[i], err = net.Dial("tcp", node.Beanstalk); err != nil {
			return err
		}
		tube := fmt.Sprintf("tube-%d", i%100)
		return askOnce(conns[i], "watch "+tube, "WATCHING 2")
	})
	idle, err := node.RSS()
	require.NoError(t, err)

	each(func(i int) error {
		_, err := io.WriteString(conns[i], "reserve\r\n")
		return err
	})
	observer := dialTubes(t, node)
	c.until(func() error { return observer.requireWaiting(connections) })
	waiting, err := node.RSS()
	require.NoError(t, err)
	t.Logf("resident memory in MiB: %d without connections, %d with %d idle ones, %d while they wait for a job",
		before>>20, idle>>20, connections, waiting>>20)
	require.Less(t, idle, int64(maxRSS))
	require.Less(t, waiting, int64(maxRSS))

	require.Contains(t, observer.ask("put 0 0 60 1", "x"), "INSERTED")
	c.until(func() error { return observer.requireWaiting(connections - 1) })
}

// requireWaiting fails unless so many connections of the node wait for jobs.
func (c *tubeClient) requireWaiting(n int) error {
	var size int
	_, err := fmt.Sscanf(c.ask("stats"), "OK %d", &size)
	require.NoError(c.t, err)
	body := make([]byte, size+2)
	_, err = io.ReadFull(c.in, body)
	require.NoError(c.t, err)
	if !bytes.Contains(body, fmt.Appendf(nil, "\ncurrent-waiting: %d\n", n)) {
		return fmt.Errorf("it is not %d connections that wait: %s", n, body)
	}
	return nil
}

// askOnce expects nothing behind the reply.
func askOnce(conn net.Conn, command, want string) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReaderSize(conn, 64).ReadString('\n')
	if err == nil && line != want+"\r\n" {
		err = fmt.Errorf("%s was answered %q", command, line)
	}
	return err
}
