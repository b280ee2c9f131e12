package gossip

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"tarry/internal/addrlimit"
)

// Anybody may open a connection to the gossip port. Memberlist bounds what it reads
// from one for clusters of a million nodes: a header of 29 bytes makes it allocate
// 117 MB, compressed ones 40 MB, on 128 connections at a time. A cluster of this
// product has some tens of nodes, so their exchange is bounded before memberlist
// reads it.
const (
	maxStreams      = 64      // connections from others at a time; the rest is closed at once
	maxAddrStreams  = 16      // of them from one address, so that one stranger leaves room for nodes
	maxStreamNodes  = 1024    // records in one exchange
	maxStreamBytes  = 1 << 20 // of one exchange: as many records of 512 bytes, with their names
	maxStreamHeader = 128     // bytes; memberlist's own is 29 to 41
)

// The types of the messages that nodes send over connections; see messageType in
// memberlist's net.go.
const (
	streamPing      = 0
	streamAck       = 2 // what answers a ping
	streamPushPull  = 6
	streamEncrypted = 10
	streamError     = 13
)

// What an encrypted message begins with: its type, its size, and the version of the
// encryption. See encryptPayload in memberlist's security.go.
const (
	encryptionVersion  = 1                      // without padding; no node sends another
	encryptionOverhead = 1 + 12 + 16            // version, nonce, tag
	minEncrypted       = encryptionOverhead + 1 // memberlist panics if nothing is encrypted
)

// transport is memberlist's, with checks of packets and connections.
type transport struct {
	*memberlist.NetTransport

	said    claims
	logger  *slog.Logger
	packets chan *memberlist.Packet
	streams chan net.Conn
	stop    chan struct{}
	once    sync.Once // memberlist shuts its transport down itself when it does not start
	stopped sync.WaitGroup
	open    *addrlimit.Limit // connections from others
}

// listen opens the TCP and UDP ports, the same number for both. Port 0 takes a
// free one.
func listen(bind string, port int, logger *slog.Logger, said claims) (*transport, error) {
	c := memberlist.NetTransportConfig{BindAddrs: []string{bind}, BindPort: port, Logger: stdLogger(logger)}
	inner, err := memberlist.NewNetTransport(&c)
	for tries := 1; err != nil && port == 0 && tries < 10; tries++ { // the UDP port of that number may be taken
		inner, err = memberlist.NewNetTransport(&c)
	}
	if err != nil {
		return nil, err
	}
	t := &transport{
		NetTransport: inner,
		said:         said,
		logger:       logger,
		packets:      make(chan *memberlist.Packet),
		streams:      make(chan net.Conn),
		stop:         make(chan struct{}),
		open:         addrlimit.New(maxStreams, maxAddrStreams),
	}
	t.stopped.Go(t.admit)
	t.stopped.Go(t.filter)
	return t, nil
}

// admit hands connections to memberlist while there is a place.
func (t *transport) admit() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			share := t.open.Of(conn.RemoteAddr().String())
			if !share.TryAcquire(1) {
				conn.Close()
				continue
			}
			bounded := &stream{Conn: conn, said: t.said, closed: sync.OnceFunc(func() { share.Release(1) })}
			select {
			case t.streams <- bounded:
			case <-t.stop:
				bounded.Close()
				return
			}
		case <-t.stop:
			return
		}
	}
}

// filter hands packets to memberlist.
func (t *transport) filter() {
	for {
		select {
		case p := <-t.NetTransport.PacketCh():
			if err := t.said.packet(p.Buf); err != nil {
				t.logger.Debug("packet dropped", "from", p.From, "error", err)
				continue
			}
			select {
			case t.packets <- p:
			case <-t.stop:
				return
			}
		case <-t.stop:
			return
		}
	}
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialAddressTimeout implements memberlist.NodeAwareTransport. The address may come
// from a forged packet, so what answers there is bounded too.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	conn, err := t.NetTransport.DialAddressTimeout(a, timeout)
	if err != nil {
		return nil, err
	}
	return &stream{Conn: conn, said: t.said, closed: func() {}}, nil
}

// Shutdown implements memberlist.Transport.
func (t *transport) Shutdown() error {
	err := t.NetTransport.Shutdown() // its listeners may wait for admit or filter, so they end first
	t.once.Do(func() { close(t.stop) })
	t.stopped.Wait()
	return err
}

// stream is a connection whose beginning is checked by its first Read.
type stream struct {
	net.Conn
	said    claims
	closed  func()
	checked io.Reader // nil before the first Read
	err     error
}

// Read is called by one goroutine at a time.
func (s *stream) Read(p []byte) (int, error) {
	if s.checked == nil && s.err == nil {
		s.checked, s.err = checkStream(s.Conn, s.said)
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.checked.Read(p)
}

func (s *stream) Close() error {
	s.closed()
	return s.Conn.Close()
}

// checkStream returns what r holds, or an error if it does not begin as an exchange
// of this product does, or has records that must not be believed.
func checkStream(r io.Reader, said claims) (io.Reader, error) {
	var kind [1]byte
	if _, err := io.ReadFull(r, kind[:]); err != nil {
		return nil, err
	}
	read := bytes.NewBuffer(kind[:])
	switch kind[0] {
	case streamPing, streamAck, streamError:
	case streamPushPull:
		records, err := said.exchange(r)
		if err != nil {
			return nil, err
		}
		read.Write(records.Bytes())
	case streamEncrypted:
		// What is encrypted is not checked: it comes from a node with a key.
		var head [5]byte
		if _, err := io.ReadFull(io.TeeReader(r, read), head[:]); err != nil {
			return nil, err
		}
		if size := binary.BigEndian.Uint32(head[:]); size < minEncrypted || size > maxStreamBytes {
			return nil, fmt.Errorf("an encrypted message announces %d bytes; it takes %d to %d", size, minEncrypted, maxStreamBytes)
		}
		if head[4] != encryptionVersion {
			return nil, fmt.Errorf("a message has encryption version %d; nodes send %d", head[4], encryptionVersion)
		}
	default:
		return nil, fmt.Errorf("a connection begins with a message of type %d, which no node sends", kind[0])
	}
	return io.LimitReader(io.MultiReader(read, r), maxStreamBytes), nil
}
