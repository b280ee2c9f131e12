package beanstalk

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/job/jobpb"
)

// taking accepts every put.
type taking struct{ api.Queue }

func (taking) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for i := range results {
		results[i] = &jobpb.Result{Seq: 1}
	}
	return results, nil
}

// deadlines is a connection that records its read deadline.
type deadlines struct {
	net.Conn
	mu   sync.Mutex
	read time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = t
	return d.Conn.SetReadDeadline(t)
}

func (d *deadlines) limited() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.read.IsZero()
}

// start serves one end of a pipe. A write at the other end returns when it was read.
func start(t *testing.T, s *Server) (client net.Conn, server *deadlines) {
	client, end := net.Pipe()
	server = &deadlines{Conn: end}
	var work sync.WaitGroup
	work.Go(newConn(s, server).serve)
	t.Cleanup(func() {
		client.Close()
		work.Wait()
	})
	return client, server
}

func send(t *testing.T, c net.Conn, text string) {
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func receive(t *testing.T, c net.Conn) string {
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	return line
}

// Connections that announce bodies and send only a byte of them do not block others.
func TestAnAnnouncedBodyUsesNoMemory(t *testing.T) {
	s := New(Options{Queue: taking{}, Logger: slog.New(slog.DiscardHandler), MaxBufferedBytes: 1 << 20})
	for range 200 {
		c, _ := start(t, s)
		send(t, c, "put 0 0 1 65535\r\n")
		send(t, c, "x")
	}
	require.LessOrEqual(t, s.bodies.Held(), int64(200*(4<<10)))
	c, _ := start(t, s)
	send(t, c, "put 0 0 1 1\r\nx\r\n")
	require.Equal(t, "INSERTED 1\r\n", receive(t, c))
}

// A body has a deadline. A client that is idle or waits for a job has none.
func TestOnlyABodyHasADeadline(t *testing.T) {
	s := New(Options{Queue: taking{}, Logger: slog.New(slog.DiscardHandler)})
	c, server := start(t, s)
	send(t, c, "put 0 0 1 5\r\n")
	send(t, c, "12")
	require.True(t, server.limited())
	send(t, c, "345\r\n")
	require.Equal(t, "INSERTED 1\r\n", receive(t, c))
	require.False(t, server.limited())
	send(t, c, "put 0 0 1 99999\r\n")
	send(t, c, "x")
	require.True(t, server.limited(), "also one that is dropped")
	require.Zero(t, s.bodies.Held())

	c, server = start(t, s)
	send(t, c, "put 0 0 1 5\r\n")
	send(t, c, "12")
	require.NoError(t, server.SetReadDeadline(longAgo)) // the deadline has passed
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection is cut")
}
