package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"tarry/cluster/nodetls"
)

// The wire format. All integers are big-endian.
//
//	header   "TARRY" version(1) kind(1) shard(4)
//	         len(1) cluster id  len(1) server id that is dialed  len(1) server id of the dialer
//	answer   status(1) len(1) cluster id len(2) reason
//
// The first six bytes and the answer are the same in all versions, so that a node can
// refuse a newer one with a reason.
const (
	magic       = "TARRY"
	wireVersion = 5
	// WireVersion is the same, for people.
	WireVersion = wireVersion

	preambleLen = len(magic) + 1
	maxID       = 255 // bytes of a cluster or server id
	maxReason   = 1024
)

type kind byte

const (
	kindRaft   kind = 1
	kindRPC    kind = 2
	kindFrames kind = 3
)

// silence is how long the other end may leave sent data unacknowledged.
func (k kind) silence() time.Duration {
	if k == kindRaft {
		return raftSilence
	}
	return silence
}

func (k kind) String() string {
	switch k {
	case kindRaft:
		return "raft"
	case kindRPC:
		return "rpc"
	case kindFrames:
		return "frames"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// status is the acceptor's verdict. The numbers are on the wire.
type status byte

const (
	statusOK           status = 0
	statusVersion      status = 1
	statusOtherCluster status = 2
	statusUnknownKind  status = 3
	statusUnknownShard status = 4
	statusBusy         status = 5
	statusOtherServer  status = 6
	statusIdentity     status = 7
)

// The reasons why a peer refused a connection, or was refused. Each is wrapped by an error
// with the peer and its reason.
var (
	ErrVersion      = errors.New("the nodes speak different wire versions")
	ErrOtherCluster = errors.New("the node belongs to another cluster")
	ErrOtherServer  = errors.New("another server has the address")
	ErrUnknownShard = errors.New("the node does not have the shard")
	ErrBusy         = errors.New("the node has too many connections")
	// ErrIdentity is returned when the other side demands TLS, or a certificate that
	// names the dialer.
	ErrIdentity = errors.New("the node wants proof of who calls")
	// ErrNotTarry is returned when the other side does not speak this protocol.
	ErrNotTarry = errors.New("the other side is not the cluster port of a Tarry node")
)

func (s status) err() error {
	switch s {
	case statusVersion, statusUnknownKind:
		return ErrVersion
	case statusOtherCluster:
		return ErrOtherCluster
	case statusOtherServer:
		return ErrOtherServer
	case statusUnknownShard:
		return ErrUnknownShard
	case statusBusy:
		return ErrBusy
	case statusIdentity:
		return ErrIdentity
	}
	return ErrNotTarry
}

// header is the first message of a dialer. It names the target server, because an
// address outlives its node. Otherwise a node that got a dead member's address would be
// mistaken for it, and its vote and its disk would count twice.
type header struct {
	kind      kind
	shard     uint32
	clusterID string // empty while the dialer has none
	to, from  string // server ids
}

func (h header) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, wireVersion, byte(h.kind))
	b = binary.BigEndian.AppendUint32(b, h.shard)
	for _, id := range []string{h.clusterID, h.to, h.from} {
		b = append(b, byte(len(id)))
		b = append(b, id...)
	}
	return b
}

// check returns an error if an id is too long.
func (h header) check() error {
	for what, id := range map[string]string{"cluster id": h.clusterID, "dialed server's id": h.to, "own server id": h.from} {
		if len(id) > maxID {
			return fmt.Errorf("the %s has %d bytes, over the limit of %d", what, len(id), maxID)
		}
	}
	return nil
}

// versionError is the error of a header with an unknown version.
type versionError struct{ version byte }

func (e versionError) Error() string {
	return fmt.Sprintf("wire version %d is not known here, only %d: upgrade the older node", e.version, wireVersion)
}

// readHeader reads exactly one header. It fails with ErrNotTarry if there is none, and
// with a versionError if the header has another version.
func readHeader(r io.Reader) (header, error) {
	var pre [preambleLen]byte
	if _, err := io.ReadFull(r, pre[:]); err != nil {
		return header{}, fmt.Errorf("read the connection's header: %w", err)
	}
	if string(pre[:len(magic)]) != magic {
		if nodetls.Begins(pre[0]) {
			return header{}, fmt.Errorf("%w: it speaks TLS, and this node has --cluster-tls-mode=off", ErrNotTarry)
		}
		return header{}, fmt.Errorf("%w: it began with %q", ErrNotTarry, pre[:])
	}
	if v := pre[len(magic)]; v != wireVersion {
		return header{}, versionError{v}
	}
	var fixed [5]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return header{}, fmt.Errorf("read the connection's header: %w", err)
	}
	h := header{kind: kind(fixed[0]), shard: binary.BigEndian.Uint32(fixed[1:])}
	for _, id := range []*string{&h.clusterID, &h.to, &h.from} {
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return header{}, fmt.Errorf("read the connection's header: %w", err)
		}
		b := make([]byte, length[0])
		if _, err := io.ReadFull(r, b); err != nil {
			return header{}, fmt.Errorf("read the connection's header: %w", err)
		}
		*id = string(b)
	}
	return h, nil
}

// answer is the acceptor's reply to a header.
type answer struct {
	status    status
	clusterID string // the acceptor's; empty while it has none
	reason    string // empty with statusOK
}

func (a answer) append(b []byte) []byte {
	a.clusterID = a.clusterID[:min(len(a.clusterID), maxID)]
	a.reason = a.reason[:min(len(a.reason), maxReason)]
	b = append(b, byte(a.status), byte(len(a.clusterID)))
	b = append(b, a.clusterID...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(a.reason)))
	return append(b, a.reason...)
}

// readAnswer reads exactly one answer.
func readAnswer(r io.Reader) (answer, error) {
	var fixed [2]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return answer{}, fmt.Errorf("read the answer to the header: %w", err)
	}
	a := answer{status: status(fixed[0])}
	if a.status > statusIdentity {
		return answer{}, fmt.Errorf("%w, or it is much newer: it answered with status %d", ErrNotTarry, fixed[0])
	}
	id := make([]byte, int(fixed[1])+2)
	if _, err := io.ReadFull(r, id); err != nil {
		return answer{}, fmt.Errorf("read the answer to the header: %w", err)
	}
	a.clusterID = string(id[:fixed[1]])
	n := binary.BigEndian.Uint16(id[fixed[1]:])
	if n > maxReason {
		return answer{}, fmt.Errorf("%w: its answer gives a reason of %d bytes, over the limit of %d", ErrNotTarry, n, maxReason)
	}
	reason := make([]byte, n)
	if _, err := io.ReadFull(r, reason); err != nil {
		return answer{}, fmt.Errorf("read the answer to the header: %w", err)
	}
	a.reason = string(reason)
	return a, nil
}
