package fault

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

func TestFloodDoesNotWaitForReplies(t *testing.T) {
	var asked atomic.Int64
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n := asked.Add(1)
		<-release
		if n%2 == 0 {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	f := flood{jobs: 2, bodyBytes: 10, every: time.Millisecond, open: 10}
	ctx, cancel := context.WithCancel(t.Context())
	o := &outcomes{counts: map[string]int{}}
	done := make(chan error, 1)
	go func() {
		done <- f.run(ctx, nil, []*localcluster.Node{{HTTP: strings.TrimPrefix(s.URL, "http://")}}, o)
	}()
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return asked.Load() == 10 && o.counts["not sent, too many open"] > 10
	}, 20*time.Second, time.Millisecond)
	cancel()
	close(release)
	require.NoError(t, <-done)
	// It may have sent some more before it saw that it is over.
	all := int(asked.Load())
	require.Equal(t, all, o.counts["429 Too Many Requests"])
	require.Equal(t, (all+1)/2, o.unasked, "every other one lacks the header")
}

func TestCrowdReportsTheOutcomesOfItsConsumers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	answers := map[string]string{"served": "WATCHING 2\r\nRESERVED 7 1\r\nx\r\n", "refused": "HTTP/1.1 429 Too Many Requests\r\n\r\n", "hung up": ""}
	for what, answer := range answers {
		c := &crowd{served: make(chan struct{}, 1), lost: make(chan error, 1), gone: make(chan struct{})}
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		node, err := l.Accept()
		require.NoError(t, err)
		c.conns = []net.Conn{conn}
		sign := "RESERVED"
		if what == "refused" {
			sign = "HTTP/1.1 200"
		}
		c.eyes.Go(func() { c.watch(conn, sign) })
		_, err = io.WriteString(node, answer)
		require.NoError(t, err)
		if what == "hung up" {
			require.NoError(t, node.Close())
		}
		select {
		case <-c.served:
			require.Equal(t, "served", what)
		case err := <-c.lost:
			require.NotEqual(t, "served", what, "%v", err)
		case <-time.After(20 * time.Second):
			require.Fail(t, "nothing was told", what)
		}
		c.leave()
		node.Close()
	}
}

func TestCPUGroupHoldsAndFreesProcesses(t *testing.T) {
	if err := CPUGroups(); err != nil {
		t.Skipf("SKIPPED, no CPU was limited: %v", err)
	}
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	inGroup := func(g *cpuGroup) bool {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
		require.NoError(t, err)
		return strings.Contains(string(data), strings.TrimPrefix(g.dir, g.home))
	}
	g, err := newCPUGroup("tarry-test", 10)
	require.NoError(t, err)
	require.NoError(t, g.add(cmd.Process.Pid))
	require.True(t, inGroup(g))
	require.NoError(t, g.close())
	require.False(t, inGroup(g))
	require.NoDirExists(t, g.dir)
}
