package gossip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// A node objects to what is said of it with a higher incarnation, a number of 32 bits. Nobody can
// object to the highest one: memberlist's counter wraps, and the others ignore the objection. So
// what no node has is refused, and a node that is announced with half of that begins anew at 1,
// under another name.
const (
	maxClaimed    = 1 << 30
	overruledFrom = maxClaimed / 2
)

// The types of the messages in packets; see messageType in memberlist's net.go.
const (
	packetSuspect  = 3
	packetAlive    = 4
	packetDead     = 5
	packetCompound = 7
	packetCompress = 9
	packetChecksum = 12
	packetLabel    = 244
)

// claims checks what is said of nodes without encryption.
type claims struct {
	self      string // this node's name
	overruled func() // is called when this node should take another name; must not block
}

// check returns an error if a record must not be believed.
func (c claims) check(node string, incarnation uint32) error {
	if node == c.self && incarnation > overruledFrom {
		c.overruled()
	}
	if incarnation > maxClaimed {
		return fmt.Errorf("incarnation %d of %.100q is above %d", incarnation, node, maxClaimed)
	}
	return nil
}

// packet returns an error for a packet that memberlist must not see. Encrypted ones begin like pings
// and pass: they come from a node with a key, or are dropped.
func (c claims) packet(b []byte) error {
	if len(b) >= 5 && b[0] == packetChecksum {
		b = b[5:]
	}
	if len(b) == 0 || b[0] != packetCompound {
		return c.message(b)
	}
	if len(b) < 2 || len(b) < 2+2*int(b[1]) {
		return errors.New("a compound packet is cut off")
	}
	lengths, rest := b[2:2+2*int(b[1])], b[2+2*int(b[1]):]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		n := int(binary.BigEndian.Uint16(lengths))
		if n > len(rest) {
			return errors.New("a compound packet is cut off")
		}
		if err := c.message(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (c claims) message(b []byte) error {
	if len(b) == 0 {
		return errors.New("a packet is empty")
	}
	switch b[0] {
	case packetCompound, packetCompress, packetLabel:
		return fmt.Errorf("a message of type %d, which no node sends", b[0])
	case packetSuspect, packetAlive, packetDead:
		var m struct {
			Incarnation uint32
			Node        string
		}
		if err := codec.NewDecoder(bytes.NewReader(b[1:]), &codec.MsgpackHandle{}).Decode(&m); err != nil {
			return err
		}
		return c.check(m.Node, m.Incarnation)
	}
	return nil
}

// exchange checks the counts and the records of an exchange over a connection, and returns what it has
// read. It decodes the counts before memberlist does.
func (c claims) exchange(r io.Reader) (read *bytes.Buffer, err error) {
	read = new(bytes.Buffer)
	bounded := &io.LimitedReader{R: r, N: maxStreamHeader}
	decoder := codec.NewDecoder(io.TeeReader(bounded, read), &codec.MsgpackHandle{})
	var header struct {
		Nodes, UserStateLen int
		Join                bool
	}
	if err := decoder.Decode(&header); err != nil {
		return nil, fmt.Errorf("the header of an exchange does not decode: %w", err)
	}
	if header.Nodes < 0 || header.Nodes > maxStreamNodes {
		return nil, fmt.Errorf("an exchange announces %d nodes; the most is %d", header.Nodes, maxStreamNodes)
	}
	if header.UserStateLen != 0 {
		return nil, errors.New("an exchange announces data beside the nodes; there is none")
	}
	bounded.N = maxStreamBytes
	for range header.Nodes {
		// The fields and their order are memberlist's (pushNodeState), because a record
		// may also be a list of values without names.
		var node struct {
			Name        string
			Addr        []byte
			Port        uint16
			Meta        []byte
			Incarnation uint32
		}
		if err := decoder.Decode(&node); err != nil {
			return nil, fmt.Errorf("a record of an exchange does not decode: %w", err)
		}
		if err := c.check(node.Name, node.Incarnation); err != nil {
			return nil, err
		}
	}
	return read, nil
}
