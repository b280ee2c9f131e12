package cluster

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// reroute forwards connections from one address to another, as when a new machine gets the
// address of a dead one.
func reroute(t *testing.T, address, to string) {
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	var running sync.WaitGroup
	stopped := make(chan struct{})
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer from.Close()
				onto, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer onto.Close()
				var copying sync.WaitGroup
				copying.Go(func() { io.Copy(onto, from); onto.(*net.TCPConn).CloseWrite() })
				copying.Go(func() { io.Copy(from, onto); from.(*net.TCPConn).CloseWrite() })
				ended := make(chan struct{})
				go func() { copying.Wait(); close(ended) }()
				select {
				case <-ended:
				case <-stopped:
					from.Close()
					onto.Close()
					<-ended
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(stopped)
		running.Wait()
	})
}

// Of five voters one is dead, and another has its address. A write needs three disks: the
// disk of the node with two addresses must count once.
func TestANodeWithTheAddressOfADeadOneCountsOnce(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 5)
	leader := c.leader()
	c.eventually(func() bool {
		h, err := c.nodes[leader].Health(context.Background())
		return err == nil && h.Healthy
	}, "all five are well")
	var others []int
	for i := range c.nodes {
		if i != leader {
			others = append(others, i)
		}
	}
	dead, twice, away := others[0], others[1], others[2:]
	c.stop(dead)
	reroute(t, c.cfgs[dead].ClusterAddr, c.cfgs[twice].ClusterAddr)
	do(t, c.nodes[leader], add("before", "t", time.Hour)) // Raft has dialed the address by now, or does below
	for _, i := range away {
		c.stop(i)
	}
	_, err := c.nodes[leader].shard.Do(context.Background(), []*jobpb.Op{add("after", "t", time.Hour)})
	require.Error(t, err, "two disks of five acknowledged it")
}
