package stranger

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Node has the addresses of a node, host:port each.
type Node struct{ HTTP, Beanstalk, Cluster, Gossip string }

// Stranger is an attacker that is neither a member nor a client.
type Stranger struct {
	From   string // its own IP address; empty: the machine's
	Target Node
	Rand   *rand.Rand
}

// Attack is one thing that a stranger does.
type Attack struct {
	Name string // lower case with hyphens
	// Run attacks and returns after some seconds at most. A refusal of the node is not an
	// error. If the node accepted a forged message the error is a Believed. Any other error
	// means that the attack could not be made.
	Run func(ctx context.Context, s *Stranger) error
}

// Believed is the error of a node that accepted a forged message: what it did.
type Believed string

func (b Believed) Error() string { return string(b) }

// believed returns a Believed.
func believed(format string, args ...any) error { return Believed(fmt.Sprintf(format, args...)) }

const (
	// dialLimit bounds a dial. A port that accepts no connection is not a failure of the
	// attack.
	dialLimit = 2 * time.Second
	// crowdTime is how long many connections stay open.
	crowdTime = 8 * time.Second
	maxReply  = 1 << 20 // bytes
)

func (s *Stranger) dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialLimit}
	if s.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(s.From)}
	}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) // thousands of closed connections would keep their ports for a minute
	}
	return c, nil
}

// tell sends bytes and returns what it receives within a while.
func (s *Stranger) tell(ctx context.Context, addr string, words []byte, listen time.Duration) []byte {
	c, err := s.dial(ctx, addr)
	if err != nil {
		return nil
	}
	defer c.Close()
	return exchange(c, words, listen)
}

// exchange writes and then reads. The node may close the connection at any time.
func exchange(c net.Conn, words []byte, listen time.Duration) []byte {
	if c.SetDeadline(time.Now().Add(dialLimit+listen)) != nil {
		return nil
	}
	if _, err := c.Write(words); err != nil {
		return nil
	}
	if c.SetReadDeadline(time.Now().Add(listen)) != nil {
		return nil
	}
	heard, _ := io.ReadAll(io.LimitReader(c, maxReply)) // until the connection is closed, or the deadline
	return heard
}

// crowd opens many connections, sends one of the beginnings over each, and leaves it open
// until hold is over. From time to time it sends drip.
func (s *Stranger) crowd(ctx context.Context, addr string, beginnings [][]byte, drip []byte, hold time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	var conns sync.WaitGroup
	defer conns.Wait()
	for _, words := range beginnings {
		c, err := s.dial(ctx, addr)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		conns.Go(func() { stay(ctx, c, words, drip) })
	}
	<-ctx.Done()
}

const dripEvery = 300 * time.Millisecond

func stay(ctx context.Context, c net.Conn, words, drip []byte) {
	defer c.Close()
	if c.SetWriteDeadline(time.Now().Add(2*crowdTime)) != nil {
		return
	}
	if _, err := c.Write(words); err != nil {
		return
	}
	tick := time.NewTicker(dripEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := c.Write(drip); err != nil {
				return
			}
		}
	}
}

// throw sends packets.
func (s *Stranger) throw(ctx context.Context, addr string, packets ...[]byte) error {
	d := net.Dialer{}
	if s.From != "" {
		d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(s.From)}
	}
	c, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return fmt.Errorf("open a socket for packets: %w", err)
	}
	defer c.Close()
	for _, p := range packets {
		_, _ = c.Write(p) // a refused packet is lost, like any other
	}
	return nil
}

// noise returns n random bytes.
func (s *Stranger) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.Rand.Uint32())
	}
	return b
}
