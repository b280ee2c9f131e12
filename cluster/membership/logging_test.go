package membership

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// logLines keeps what a node logs at level Info and above, over all its runs.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logLines) handler() slog.Handler { return slog.NewTextHandler(l, nil) }

// with lists the lines that contain all of the parts.
func (l *logLines) with(parts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

const duplicateID = "another node has this node's id"

func TestTheLogNamesMembersThatStopAndReturn(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	leader := w.leader()
	member := other(nodes, leader)
	logged := func(level, what string) {
		t.Helper()
		eventually(t, what, func() bool {
			return len(leader.log.with("level="+level, `msg="member `+what, "member="+member.id+" ")) > 0
		})
	}
	logged("INFO", "is alive")
	member.kill()
	logged("WARN", "has stopped")
	member.start()
	logged("INFO", "is back")
	w.voters("n1", "n2", "n3")
	leader = w.leader()
	if leader == member {
		leader = other(nodes, member)
	}
	require.NoError(t, leader.Remove(context.Background(), member.id))
	eventually(t, "has left", func() bool {
		return len(leader.log.with("level=INFO", `msg="member has left the cluster"`, "member="+member.id+"\n")) > 0
	})
}

func TestBothNodesWithOneIDLogTheOthersAddressAndWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ expect, firstExpect int }{
		"one is in the cluster": {firstExpect: 1},
		"both are fresh":        {expect: 2, firstExpect: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(t)
			first := w.node("n1", c.firstExpect)
			second := w.node("n1", c.expect, first.gossipAddr())
			second.incarnation = 2
			first.start()
			second.start()
			for n, other := range map[*node]*node{first: second, second: first} {
				eventually(t, "a warning", func() bool {
					return len(n.log.with("level=WARN", duplicateID, "other_address="+other.clusterAddr)) == 1
				})
				line := n.log.with(duplicateID)[0]
				require.Contains(t, line, "start it with another --node-id")
				which := "stop one of the two,"
				if c.expect == 0 {
					which = map[bool]string{true: "stop the other,", false: "stop this one,"}[n == first]
				}
				require.Contains(t, line, which)
			}
			// Only when something has changed is there another.
			warned := map[string]string{second.serverID(): second.clusterAddr}
			for range 3 {
				first.warnOfDuplicates(context.Background(), warned)
			}
			require.Len(t, first.log.with(duplicateID), 1)
			require.Len(t, second.log.with(duplicateID), 1)
			second.stop()
			eventually(t, "it is gone", func() bool {
				first.warnOfDuplicates(context.Background(), warned)
				return len(warned) == 0
			})
			second.clusterAddr = fmt.Sprintf("localhost:%d", freePort(t))
			second.start()
			eventually(t, "it is elsewhere", func() bool { return len(first.log.with(duplicateID, second.clusterAddr)) == 1 })
		})
	}
}

func TestWhyANodeIsNotAddedIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1 := w.node("n1", 1)
	n1.start()
	twin := w.node("n1", 0, n1.gossipAddr())
	twin.incarnation = 2
	twin.start()
	because := "another node with the id n1 is still alive at " + n1.clusterAddr
	eventually(t, "it says why", func() bool { return len(n1.log.with("level=WARN", because)) > 0 })
	// Each pass of the leader stores its own problems.
	for range 3 {
		pass := n1.leadership.Load().problems.Load()
		eventually(t, "another pass", func() bool { return n1.leadership.Load().problems.Load() != pass })
	}
	require.Len(t, n1.log.with(because), 1)
}
