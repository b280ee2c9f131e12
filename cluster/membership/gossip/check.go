package gossip

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"tarry/job"
)

// Bounds of a node's record. Anybody can send a record, and its content is dialed,
// logged and shown to operators.
const (
	maxNodeID      = 64
	maxIncarnation = 32
	maxVersion     = 64
)

// wellFormed returns an error for a record that no node makes. incarnation is the part
// of the server id after the node id.
func (m Meta) wellFormed(incarnation string) error {
	if err := job.CheckID("node id", m.NodeID); err != nil || len(m.NodeID) > maxNodeID {
		return errors.Join(fmt.Errorf("node id %.70q is not one of 1 to %d bytes", m.NodeID, maxNodeID), err)
	}
	if !strings.HasPrefix(incarnation, ".") || len(incarnation) > maxIncarnation+1 || !wordChars(incarnation[1:], "") {
		return fmt.Errorf("server id %.100q is not the node id, a dot and an incarnation", m.ServerID)
	}
	if err := checkAddr(m.ClusterAddr); err != nil {
		return fmt.Errorf("cluster address %w", err)
	}
	if m.HTTPAddr != "" {
		if err := checkAddr(m.HTTPAddr); err != nil {
			return fmt.Errorf("HTTP address %w", err)
		}
	}
	if len(m.ClusterID) > maxClusterID || !wordChars(m.ClusterID, "-") {
		return fmt.Errorf("cluster id %.40q is not one", m.ClusterID)
	}
	if len(m.Version) > maxVersion || !wordChars(m.Version, ".-+_:~()/ ") {
		return fmt.Errorf("version %.70q is not one", m.Version)
	}
	return nil
}

// checkAddr returns an error unless addr is a name or an IP and a port.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%.100q is not host:port", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%.100q: the port must be a number from 1 to 65535", addr)
	}
	if host == "" || len(host) > 253 || !wordChars(host, ".-_:%") {
		return fmt.Errorf("%.100q has no valid host", addr)
	}
	return nil
}

// wordChars reports whether s has only ASCII letters, digits, and the bytes of also.
func wordChars(s, also string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(also, c) >= 0:
		default:
			return false
		}
	}
	return true
}
