//lint:file-ignore SA1019 Raft still sends and reads the deprecated fields, and its messages must arrive whole.

package raftwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// The format of messages. Integers are big-endian and have 8 bytes unless noted. Bytes
// begin with their length (4). A message has nothing after its last field.
//
//	header     protocol version(1) bytes id  bytes address
//	append     header term  bytes leader  previous entry, its term, leader's commit index, count(4) entries
//	entry      index term type(1) time of the append in ns since 1970 or 0  bytes data  bytes extensions
//	vote       header term  bytes candidate  last index, its term, transfer(1)
//	pre-vote   header term  last index, its term
//	snapshot   header version(1) term  bytes leader  last index, its term  bytes peers
//	           bytes configuration  its index, size
//	timeoutNow header
//
//	reply to append      header term, last index, success(1) no backoff(1)
//	reply to vote        header term  bytes peers  granted(1)
//	reply to pre-vote    header term granted(1)
//	reply to snapshot    header term success(1)
//	reply to timeoutNow  header
const (
	// minEntry is the least size of an entry.
	minEntry = 8 + 8 + 1 + 8 + 4 + 4
	// maxEntries bounds the entries of an append, whose memory is above that of the
	// message. Raft sends its MaxAppendEntries at most, which are far fewer.
	maxEntries = 4096
	// maxName bounds ids and addresses, in bytes. A connection keeps the last ones.
	maxName = 1 << 10
)

var errShort = errors.New("it ends too early")

// appendRequest appends a request to b.
func appendRequest(b []byte, request any) []byte {
	switch m := request.(type) {
	case *raft.AppendEntriesRequest:
		return appendEntries(b, m)
	case *raft.RequestVoteRequest:
		b = appendBytes(appendUints(appendHeader(b, m.RPCHeader), m.Term), m.Candidate)
		return appendBool(appendUints(b, m.LastLogIndex, m.LastLogTerm), m.LeadershipTransfer)
	case *raft.RequestPreVoteRequest:
		return appendUints(appendHeader(b, m.RPCHeader), m.Term, m.LastLogIndex, m.LastLogTerm)
	case *raft.InstallSnapshotRequest:
		b = append(appendHeader(b, m.RPCHeader), byte(m.SnapshotVersion))
		b = appendBytes(appendUints(b, m.Term), m.Leader)
		b = appendBytes(appendUints(b, m.LastLogIndex, m.LastLogTerm), m.Peers)
		return appendUints(appendBytes(b, m.Configuration), m.ConfigurationIndex, uint64(m.Size))
	case *raft.TimeoutNowRequest:
		return appendHeader(b, m.RPCHeader)
	}
	panic(fmt.Sprintf("raftwire: a request of type %T", request))
}

func appendEntries(b []byte, m *raft.AppendEntriesRequest) []byte {
	b = appendBytes(appendUints(appendHeader(b, m.RPCHeader), m.Term), m.Leader)
	b = appendUints(b, m.PrevLogEntry, m.PrevLogTerm, m.LeaderCommitIndex)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Entries)))
	for _, e := range m.Entries {
		b = append(appendUints(b, e.Index, e.Term), byte(e.Type))
		var at int64
		if !e.AppendedAt.IsZero() {
			at = e.AppendedAt.UnixNano()
		}
		b = appendBytes(appendBytes(appendUints(b, uint64(at)), e.Data), e.Extensions)
	}
	return b
}

// appendReply appends a reply to b.
func appendReply(b []byte, reply any) ([]byte, error) {
	switch m := reply.(type) {
	case *raft.AppendEntriesResponse:
		b = appendUints(appendHeader(b, m.RPCHeader), m.Term, m.LastLog)
		return appendBool(appendBool(b, m.Success), m.NoRetryBackoff), nil
	case *raft.RequestVoteResponse:
		b = appendBytes(appendUints(appendHeader(b, m.RPCHeader), m.Term), m.Peers)
		return appendBool(b, m.Granted), nil
	case *raft.RequestPreVoteResponse:
		return appendBool(appendUints(appendHeader(b, m.RPCHeader), m.Term), m.Granted), nil
	case *raft.InstallSnapshotResponse:
		return appendBool(appendUints(appendHeader(b, m.RPCHeader), m.Term), m.Success), nil
	case *raft.TimeoutNowResponse:
		return appendHeader(b, m.RPCHeader), nil
	}
	return nil, fmt.Errorf("a reply of type %T", reply)
}

func appendHeader(b []byte, h raft.RPCHeader) []byte {
	return appendBytes(appendBytes(append(b, byte(h.ProtocolVersion)), h.ID), h.Addr)
}

func appendBytes(b, p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
}

func appendUints(b []byte, all ...uint64) []byte {
	for _, u := range all {
		b = binary.BigEndian.AppendUint64(b, u)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// senders are the id and the addresses of the last message of a connection. Those of the
// next one mostly are the same, and then share its memory.
type senders struct{ id, address, leader []byte }

// same returns b's content, in *last if that is equal.
func same(last *[]byte, b []byte) []byte {
	if !bytes.Equal(*last, b) {
		*last = bytes.Clone(b)
	}
	return *last
}

// decoder reads the fields of a message. Nothing that it returns shares memory with the
// message. The fields after an error are zero, and those before it are not: a message whose
// end returns an error must not be used.
type decoder struct {
	b    []byte
	err  error
	from *senders
}

// request decodes a request of a kind.
func (d *decoder) request(k kind) (any, error) {
	var request any
	switch k {
	case kindAppend:
		request = d.entriesRequest()
	case kindVote:
		request = &raft.RequestVoteRequest{RPCHeader: d.header(), Term: d.uint(), Candidate: d.name(&d.from.leader),
			LastLogIndex: d.uint(), LastLogTerm: d.uint(), LeadershipTransfer: d.bool()}
	case kindPreVote:
		request = &raft.RequestPreVoteRequest{RPCHeader: d.header(), Term: d.uint(), LastLogIndex: d.uint(), LastLogTerm: d.uint()}
	case kindSnapshot:
		request = &raft.InstallSnapshotRequest{RPCHeader: d.header(), SnapshotVersion: raft.SnapshotVersion(d.byte()), Term: d.uint(),
			Leader: d.name(&d.from.leader), LastLogIndex: d.uint(), LastLogTerm: d.uint(), Peers: clone(d.bytes()),
			Configuration: clone(d.bytes()), ConfigurationIndex: d.uint(), Size: int64(d.uint())}
	case kindTimeoutNow:
		request = &raft.TimeoutNowRequest{RPCHeader: d.header()}
	default:
		return nil, fmt.Errorf("a message of unknown kind %d: upgrade the older node", k)
	}
	return request, d.end()
}

func (d *decoder) entriesRequest() *raft.AppendEntriesRequest {
	m := &raft.AppendEntriesRequest{RPCHeader: d.header(), Term: d.uint(), Leader: d.name(&d.from.leader),
		PrevLogEntry: d.uint(), PrevLogTerm: d.uint(), LeaderCommitIndex: d.uint()}
	count := int(d.uint32())
	if count > maxEntries {
		d.fail(fmt.Errorf("it has %d entries where %d are allowed", count, maxEntries))
	} else if count > len(d.b)/minEntry {
		d.fail(fmt.Errorf("it has %d entries in %d bytes", count, len(d.b)))
	}
	if d.err != nil || count == 0 {
		return m
	}
	m.Entries = make([]*raft.Log, count)
	for i := range m.Entries {
		e := &raft.Log{Index: d.uint(), Term: d.uint(), Type: raft.LogType(d.byte())}
		if at := int64(d.uint()); at != 0 {
			e.AppendedAt = time.Unix(0, at).UTC()
		}
		e.Data, e.Extensions = clone(d.bytes()), clone(d.bytes())
		m.Entries[i] = e
		if d.err != nil {
			break // the message is not used
		}
	}
	return m
}

// reply decodes a reply into the one that is expected. After an error that is unchanged:
// bytes of which only the end is damaged must not count as a success.
func (d *decoder) reply(into any) error {
	switch m := into.(type) {
	case *raft.AppendEntriesResponse:
		return whole(d, m, raft.AppendEntriesResponse{RPCHeader: d.header(), Term: d.uint(), LastLog: d.uint(), Success: d.bool(), NoRetryBackoff: d.bool()})
	case *raft.RequestVoteResponse:
		return whole(d, m, raft.RequestVoteResponse{RPCHeader: d.header(), Term: d.uint(), Peers: clone(d.bytes()), Granted: d.bool()})
	case *raft.RequestPreVoteResponse:
		return whole(d, m, raft.RequestPreVoteResponse{RPCHeader: d.header(), Term: d.uint(), Granted: d.bool()})
	case *raft.InstallSnapshotResponse:
		return whole(d, m, raft.InstallSnapshotResponse{RPCHeader: d.header(), Term: d.uint(), Success: d.bool()})
	case *raft.TimeoutNowResponse:
		return whole(d, m, raft.TimeoutNowResponse{RPCHeader: d.header()})
	}
	panic(fmt.Sprintf("raftwire: a reply of type %T", into))
}

// whole sets *into to a decoded message, unless its decoder has an error.
func whole[T any](d *decoder, into *T, m T) error {
	err := d.end()
	if err == nil {
		*into = m
	}
	return err
}

func (d *decoder) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersion(d.byte()), ID: d.name(&d.from.id), Addr: d.name(&d.from.address)}
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// take returns the next n bytes of the message, or zeros.
func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.fail(errShort)
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) byte() byte {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail(fmt.Errorf("it has %d where 0 or 1 was expected", v))
	}
	return v == 1
}

func (d *decoder) uint() uint64 {
	if p := d.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if p := d.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (d *decoder) bytes() []byte {
	n := d.uint32()
	if uint64(n) > uint64(len(d.b)) {
		d.fail(errShort)
		return nil
	}
	return d.take(int(n))
}

// name returns an id or an address. last is that of the last message.
func (d *decoder) name(last *[]byte) []byte {
	b := d.bytes()
	if len(b) > maxName {
		d.fail(fmt.Errorf("it has an id or address of %d bytes where %d are allowed", len(b), maxName))
	}
	if d.err != nil {
		return nil
	}
	return same(last, b)
}

// end returns the first error, or one if a part of the message is left.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail(fmt.Errorf("it has %d bytes too many", len(d.b)))
	}
	return d.err
}

// clone copies b; nil for an empty one.
func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}
