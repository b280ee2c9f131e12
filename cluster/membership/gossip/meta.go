package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
)

// MaxMeta is memberlist's limit on a node's record, in bytes.
const MaxMeta = 512

// metaVersion is the first byte of a record. A later release may append fields
// under the same version, which older ones skip; a new version is a break.
const metaVersion = 1

// Meta is a node's own record.
type Meta struct {
	NodeID      string // --node-id
	ServerID    string // the Raft server id, NodeID "." incarnation
	ClusterAddr string // advertised host:port for Raft and RPC
	HTTPAddr    string // advertised host:port for clients
	ClusterID   string // empty while the node belongs to no cluster
	Version     string // release of the binary
	Expect      uint32 // --bootstrap-expect, 0 when the node only joins
	Protocol    uint32 // of the membership messages between nodes
	Epoch       uint64 // start of this process; tells two runs of one server apart
	// Fresh says that the node has no Raft state: its ClusterID, if any, is
	// only the cluster that it waits to be taken into.
	Fresh bool
	// NonVoter says that the node was started not to vote.
	NonVoter bool
}

const (
	flagFresh    = 1
	flagNonVoter = 2
)

// Encode returns the record's bytes, or an error if they exceed MaxMeta.
func (m Meta) Encode() ([]byte, error) {
	// Most of a record is the host name, and it is usually the same twice.
	http := m.HTTPAddr
	if host, port, err := net.SplitHostPort(http); err == nil && port != "" {
		if h, _, err := net.SplitHostPort(m.ClusterAddr); err == nil && h == host {
			http = ":" + port
		}
	}
	var flags uint64
	if m.Fresh {
		flags |= flagFresh
	}
	if m.NonVoter {
		flags |= flagNonVoter
	}
	b := []byte{metaVersion}
	for _, n := range []uint64{uint64(m.Protocol), uint64(m.Expect), m.Epoch, flags} {
		b = binary.AppendUvarint(b, n)
	}
	for _, s := range []string{m.NodeID, incarnationOf(m.NodeID, m.ServerID), m.ClusterAddr, http, m.ClusterID, m.Version} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	if len(b) > MaxMeta {
		return nil, fmt.Errorf("what this node would say of itself has %d bytes, the limit is %d: use shorter node id, host names or version", len(b), MaxMeta)
	}
	return b, nil
}

// maxClusterID is the space reserved for a cluster id, which is set later.
const maxClusterID = 32

// Check returns an error if the record could exceed MaxMeta, or others would refuse it.
func (m Meta) Check() error {
	if len(m.ClusterID) < maxClusterID {
		m.ClusterID = strings.Repeat("x", maxClusterID)
	}
	if _, err := m.Encode(); err != nil {
		return err
	}
	return m.wellFormed(incarnationOf(m.NodeID, m.ServerID))
}

// incarnationOf is what has to be added to a node id to get its server id.
func incarnationOf(nodeID, serverID string) string {
	return strings.TrimPrefix(serverID, nodeID)
}

var errShortMeta = errors.New("node record is cut off")

// DecodeMeta reads what Encode wrote. The input comes from the network.
func DecodeMeta(b []byte) (Meta, error) {
	if len(b) == 0 {
		return Meta{}, errors.New("node record is empty: not a Tarry node")
	}
	if len(b) > MaxMeta {
		return Meta{}, fmt.Errorf("node record has %d bytes, the limit is %d", len(b), MaxMeta)
	}
	if b[0] != metaVersion {
		return Meta{}, fmt.Errorf("node record has version %d, this node knows %d", b[0], metaVersion)
	}
	b = b[1:]
	var nums [4]uint64
	for i := range nums {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return Meta{}, errShortMeta
		}
		nums[i], b = v, b[n:]
	}
	var strs [6]string
	for i := range strs {
		l, n := binary.Uvarint(b)
		if n <= 0 || l > uint64(len(b)-n) {
			return Meta{}, errShortMeta
		}
		strs[i], b = string(b[n:n+int(l)]), b[n+int(l):]
	}
	m := Meta{
		Protocol: uint32(nums[0]), Expect: uint32(nums[1]), Epoch: nums[2], Fresh: nums[3]&flagFresh != 0, NonVoter: nums[3]&flagNonVoter != 0,
		NodeID: strs[0], ServerID: strs[0] + strs[1], ClusterAddr: strs[2],
		HTTPAddr: strs[3], ClusterID: strs[4], Version: strs[5],
	}
	if uint64(m.Protocol) != nums[0] || uint64(m.Expect) != nums[1] {
		return Meta{}, errors.New("node record has a number out of range")
	}
	if m.NodeID == "" || strs[1] == "" || m.ClusterAddr == "" {
		return Meta{}, errors.New("node record lacks a node id, server id or cluster address")
	}
	if strings.HasPrefix(m.HTTPAddr, ":") {
		host, _, err := net.SplitHostPort(m.ClusterAddr)
		if err != nil {
			return Meta{}, fmt.Errorf("node record has a malformed cluster address: %w", err)
		}
		m.HTTPAddr = net.JoinHostPort(host, m.HTTPAddr[1:])
	}
	if err := m.wellFormed(strs[1]); err != nil {
		return Meta{}, fmt.Errorf("node record: %w", err)
	}
	return m, nil
}
