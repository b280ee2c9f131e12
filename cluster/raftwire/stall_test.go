package raftwire

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// pipes is a layer whose connections are in memory, so that a test has a clock of its own.
type pipes struct {
	accepted chan net.Conn
	done     chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	near, far := net.Pipe()
	p.accepted <- far
	return near, nil
}

const stall = 5 * time.Second

// withClock runs a test with a transport whose requests are counted and answered as Raft's main
// goroutine does: one after the other, and snapshots are read to their end.
func withClock(t *testing.T, test func(t *testing.T, p *pipes, handled *atomic.Int64, readError func() error)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{accepted: make(chan net.Conn), done: make(chan struct{})}
		tr := New(Config{Layer: p, Pool: 2, Timeout: 10 * time.Second, Stall: stall, Logger: slog.New(slog.DiscardHandler)})
		var handled atomic.Int64
		var last atomic.Pointer[error]
		answer(t, tr, func(rpc raft.RPC) (any, error) {
			handled.Add(1)
			if rpc.Reader == nil {
				return new(raft.RequestVoteResponse), nil
			}
			_, err := io.Copy(io.Discard, rpc.Reader)
			last.Store(&err)
			_, again := io.Copy(io.Discard, rpc.Reader) // Raft discards what is left
			require.Equal(t, err, again)
			return new(raft.InstallSnapshotResponse), err
		})
		test(t, p, &handled, func() error {
			if err := last.Load(); err != nil {
				return *err
			}
			return errors.New("no snapshot was read")
		})
		require.NoError(t, tr.Close())
	})
}

// dial returns a connection to the transport. What that sends is discarded.
func (p *pipes) dial(t *testing.T) net.Conn {
	c, err := p.Dial("", 0)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, c) }()
	t.Cleanup(func() { c.Close() })
	return c
}

func announce(t *testing.T, size int64) []byte {
	b := appendRequest(appendHead(nil, kindSnapshot), &raft.InstallSnapshotRequest{Term: 1, Size: size, SnapshotVersion: 1})
	require.NoError(t, endFrame(b, maxMessage))
	return b
}

func vote(t *testing.T) []byte {
	b := appendRequest(appendHead(nil, kindVote), &raft.RequestVoteRequest{Term: 1})
	require.NoError(t, endFrame(b, maxMessage))
	return b
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	_, err := c.Write(b)
	require.NoError(t, err)
}

func TestASenderThatStallsInTheMiddleOfItsStateDoesNotBlockRaft(t *testing.T) {
	withClock(t, func(t *testing.T, p *pipes, handled *atomic.Int64, readError func() error) {
		c := p.dial(t)
		write(t, c, append(announce(t, 1<<20), make([]byte, 2*bufferBytes)...))
		synctest.Wait()
		require.EqualValues(t, 1, handled.Load())
		other := p.dial(t)
		write(t, other, vote(t))
		synctest.Wait()
		require.EqualValues(t, 1, handled.Load(), "Raft reads the state")
		time.Sleep(stall + time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 2, handled.Load())
		require.ErrorContains(t, readError(), "after 131072 of 1048576 bytes: the sender has sent nothing for 5s")
		_, err := c.Write([]byte{0})
		require.Error(t, err, "its connection is closed")
	})
}

func TestAStateOfWhichNothingArrivesDoesNotReachRaft(t *testing.T) {
	withClock(t, func(t *testing.T, p *pipes, handled *atomic.Int64, _ func() error) {
		var idle []net.Conn
		for range maxReceives {
			c := p.dial(t)
			write(t, c, announce(t, 1<<20))
			idle = append(idle, c)
		}
		synctest.Wait()
		more := p.dial(t)
		write(t, more, announce(t, 1<<20))
		synctest.Wait()
		_, err := more.Write([]byte{0})
		require.Error(t, err, "more are refused at once")
		write(t, p.dial(t), vote(t))
		synctest.Wait()
		require.EqualValues(t, 1, handled.Load(), "only the vote")
		time.Sleep(stall + time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, handled.Load())
		for _, c := range idle {
			_, err := c.Write([]byte{0})
			require.Error(t, err, "its connection is closed")
		}
		c := p.dial(t)
		write(t, c, append(announce(t, 10), make([]byte, 10)...))
		synctest.Wait()
		require.EqualValues(t, 2, handled.Load(), "there is room again")
	})
}

func TestASlowSenderThatGoesOnIsNotInterrupted(t *testing.T) {
	withClock(t, func(t *testing.T, p *pipes, handled *atomic.Int64, readError func() error) {
		const parts = 50
		c := p.dial(t)
		write(t, c, announce(t, parts*bufferBytes))
		for range parts {
			time.Sleep(stall - time.Millisecond)
			write(t, c, make([]byte, bufferBytes))
		}
		synctest.Wait()
		require.EqualValues(t, 1, handled.Load())
		require.NoError(t, readError())
	})
}

func TestARequestThatIsSentHalfEndsItsConnection(t *testing.T) {
	withClock(t, func(t *testing.T, p *pipes, handled *atomic.Int64, _ func() error) {
		c := p.dial(t)
		for range 3 {
			write(t, c, vote(t))
			time.Sleep(time.Hour) // idle connections are pooled
		}
		synctest.Wait()
		require.EqualValues(t, 3, handled.Load())
		write(t, c, vote(t)[:20])
		time.Sleep(stall - time.Millisecond)
		write(t, c, vote(t)[20:])
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 4, handled.Load())
		write(t, c, vote(t)[:20])
		time.Sleep(stall + time.Millisecond)
		synctest.Wait()
		_, err := c.Write([]byte{0})
		require.Error(t, err)
		require.EqualValues(t, 4, handled.Load())
	})
}

// The process of the follower hangs while it receives.
func TestAFollowerThatTakesNothingOfAStateIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		go func() { _, _ = io.CopyN(io.Discard, far, 100_000) }()
		start := time.Now()
		w := progressWriter{near, start.Add(time.Hour)}
		_, err := w.Write(make([]byte, 200_000))
		require.Error(t, err)
		require.Equal(t, takeTimeout, time.Since(start))
		far.Close()
	})
}
