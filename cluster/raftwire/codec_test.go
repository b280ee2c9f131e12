//lint:file-ignore SA1019 Raft still sends and reads the deprecated fields, and its messages must arrive whole.

package raftwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

var header = raft.RPCHeader{ProtocolVersion: 3, ID: []byte("n1.a"), Addr: []byte("n1:7301")}

// requests has one of each kind with all fields set, and an empty one.
func requests() map[kind][]any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return map[kind][]any{
		kindAppend: {&raft.AppendEntriesRequest{RPCHeader: header, Term: 1, Leader: []byte("n1:7301"), PrevLogEntry: 2, PrevLogTerm: 3, LeaderCommitIndex: 4,
			Entries: []*raft.Log{
				{Index: 5, Term: 6, Type: raft.LogConfiguration, Data: []byte("data"), Extensions: []byte("ext"), AppendedAt: at},
				{Index: 6, Term: 6, Type: raft.LogNoop},
			}}, new(raft.AppendEntriesRequest)},
		kindVote: {&raft.RequestVoteRequest{RPCHeader: header, Term: 1, Candidate: []byte("n1:7301"), LastLogIndex: 2, LastLogTerm: 3, LeadershipTransfer: true},
			new(raft.RequestVoteRequest)},
		kindPreVote: {&raft.RequestPreVoteRequest{RPCHeader: header, Term: 1, LastLogIndex: 2, LastLogTerm: 3}, new(raft.RequestPreVoteRequest)},
		kindSnapshot: {&raft.InstallSnapshotRequest{RPCHeader: header, SnapshotVersion: 1, Term: 1, Leader: []byte("n1:7301"), LastLogIndex: 2, LastLogTerm: 3,
			Peers: []byte("p"), Configuration: []byte("c"), ConfigurationIndex: 4, Size: 5}, new(raft.InstallSnapshotRequest)},
		kindTimeoutNow: {&raft.TimeoutNowRequest{RPCHeader: header}, new(raft.TimeoutNowRequest)},
	}
}

// replies has one of each kind with all fields set.
func replies() []any {
	return []any{
		&raft.AppendEntriesResponse{RPCHeader: header, Term: 1, LastLog: 2, Success: true, NoRetryBackoff: true},
		&raft.RequestVoteResponse{RPCHeader: header, Term: 1, Peers: []byte("p"), Granted: true},
		&raft.RequestPreVoteResponse{RPCHeader: header, Term: 1, Granted: true},
		&raft.InstallSnapshotResponse{RPCHeader: header, Term: 1, Success: true},
		&raft.TimeoutNowResponse{RPCHeader: header},
	}
}

// empty returns a reply of the same type.
func empty(reply any) any {
	switch reply.(type) {
	case *raft.AppendEntriesResponse:
		return new(raft.AppendEntriesResponse)
	case *raft.RequestVoteResponse:
		return new(raft.RequestVoteResponse)
	case *raft.RequestPreVoteResponse:
		return new(raft.RequestPreVoteResponse)
	case *raft.InstallSnapshotResponse:
		return new(raft.InstallSnapshotResponse)
	}
	return new(raft.TimeoutNowResponse)
}

func decoding(b []byte) *decoder { return &decoder{b: b, from: new(senders)} }

// Every field of every message arrives, and every message that is cut or too long is an
// error.
func TestMessagesArriveComplete(t *testing.T) {
	for k, list := range requests() {
		for _, want := range list {
			b := appendRequest(nil, want)
			got, err := decoding(b).request(k)
			require.NoError(t, err)
			require.Equal(t, want, got)
			for n := range b {
				_, err := decoding(b[:n]).request(k)
				require.Error(t, err, "%T of %d bytes", want, n)
			}
			_, err = decoding(append(b, 0)).request(k)
			require.ErrorContains(t, err, "1 bytes too many")
		}
	}
	for _, want := range replies() {
		b, err := appendReply(nil, want)
		require.NoError(t, err)
		got := empty(want)
		require.NoError(t, decoding(b).reply(got))
		require.Equal(t, want, got)
		damaged := [][]byte{append(b, 0)}
		for n := range b {
			damaged = append(damaged, b[:n])
		}
		for _, b := range damaged {
			got := empty(want)
			require.Error(t, decoding(b).reply(got))
			require.Equal(t, empty(want), got, "nothing of a damaged reply is used")
		}
	}
	_, err := decoding(nil).request(kindReply)
	require.ErrorContains(t, err, "upgrade the older node")
}

// The bytes are those that nodes of later releases must understand.
func TestMessageBytes(t *testing.T) {
	c := clientBuffer(t, kindAppend, requests()[kindAppend][0])
	require.Equal(t, "\x00\x00\x00\x8d\x01"+
		"\x03\x00\x00\x00\x04n1.a\x00\x00\x00\x07n1:7301"+
		"\x00\x00\x00\x00\x00\x00\x00\x01"+"\x00\x00\x00\x07n1:7301"+
		"\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04"+
		"\x00\x00\x00\x02"+
		"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06\x05\x18\x86\xca\xf2\x1c\x96\x32\x06\x00\x00\x00\x04data\x00\x00\x00\x03ext"+
		"\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x06\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", string(c))
}

func clientBuffer(t testing.TB, k kind, request any) []byte {
	b := appendRequest(appendHead(nil, k), request)
	require.NoError(t, endFrame(b, maxMessage))
	return b
}

// Raft and the state machine keep entries long after the message.
func TestADecodedMessageSharesNoMemoryWithItsBytes(t *testing.T) {
	for k, list := range requests() {
		b := appendRequest(nil, list[0])
		got, err := decoding(b).request(k)
		require.NoError(t, err)
		clear(b)
		require.Equal(t, list[0], got)
	}
}

func TestAConnectionsSenderIsNotCopiedAgain(t *testing.T) {
	b := appendRequest(nil, requests()[kindTimeoutNow][0])
	from := new(senders)
	first, err := (&decoder{b: b, from: from}).request(kindTimeoutNow)
	require.NoError(t, err)
	second, err := (&decoder{b: b, from: from}).request(kindTimeoutNow)
	require.NoError(t, err)
	require.Same(t, &first.(*raft.TimeoutNowRequest).ID[0], &second.(*raft.TimeoutNowRequest).ID[0])
}

func TestDamagedFramesAreErrors(t *testing.T) {
	frame := func(length uint32, rest string) io.Reader {
		return bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, length), rest...))
	}
	for name, c := range map[string]struct {
		r    io.Reader
		want string
	}{
		"too short":          {frame(0, "\x01"), "a message of -1 bytes"},
		"too long":           {frame(maxMessage+2, "\x01"), "it may have 0 to"},
		"the longest length": {frame(1<<32-1, "\x01"), "it may have 0 to"},
		"cut in its head":    {frame(5, ""), io.ErrUnexpectedEOF.Error()},
		"cut":                {frame(5, "\x01abc"), io.ErrUnexpectedEOF.Error()},
		"cut and large":      {frame(1<<20, "\x01abc"), io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := newFrameReader(c.r).next(maxMessage)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, _, err := newFrameReader(bytes.NewReader(nil)).next(maxMessage)
	require.Equal(t, io.EOF, err)
	require.Error(t, endFrame(make([]byte, headBytes+11), 10))
}

// Neither the length of a message nor a number in it allocates memory alone.
func TestNumbersDoNotAllocate(t *testing.T) {
	entries := appendRequest(nil, new(raft.AppendEntriesRequest))
	binary.BigEndian.PutUint32(entries[len(entries)-4:], 1<<31)
	id := binary.BigEndian.AppendUint32([]byte{3}, 1<<31)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := newFrameReader(bytes.NewReader(binary.BigEndian.AppendUint32(nil, maxMessage))).next(maxMessage)
	require.Error(t, err)
	_, err = decoding(entries).request(kindAppend)
	require.ErrorContains(t, err, "entries where 4096 are allowed")
	binary.BigEndian.PutUint32(entries[len(entries)-4:], maxEntries)
	_, err = decoding(entries).request(kindAppend)
	require.ErrorContains(t, err, "entries in 0 bytes")
	_, err = decoding(id).request(kindTimeoutNow)
	require.ErrorIs(t, err, errShort)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// What a connection remembers of its sender, and the entries of one append, are bounded.
func TestTooLargeFieldsAreErrors(t *testing.T) {
	long := bytes.Repeat([]byte("x"), maxName+1)
	for name, m := range map[string]struct {
		k       kind
		request any
	}{
		"id":        {kindTimeoutNow, &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ID: long}}},
		"address":   {kindTimeoutNow, &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{Addr: long}}},
		"leader":    {kindAppend, &raft.AppendEntriesRequest{Leader: long}},
		"candidate": {kindVote, &raft.RequestVoteRequest{Candidate: long}},
		"sender":    {kindSnapshot, &raft.InstallSnapshotRequest{Leader: long}},
	} {
		t.Run(name, func(t *testing.T) {
			d := decoding(appendRequest(nil, m.request))
			_, err := d.request(m.k)
			require.ErrorContains(t, err, "1025 bytes where 1024 are allowed")
			require.Zero(t, *d.from)
		})
	}
	_, err := decoding(appendRequest(nil, &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ID: long[:maxName], Addr: long[:maxName]}})).request(kindTimeoutNow)
	require.NoError(t, err)

	entries := make([]*raft.Log, maxEntries+1)
	for i := range entries {
		entries[i] = new(raft.Log)
	}
	_, err = decoding(appendRequest(nil, &raft.AppendEntriesRequest{Entries: entries})).request(kindAppend)
	require.ErrorContains(t, err, "it has 4097 entries where 4096 are allowed")
	_, err = decoding(appendRequest(nil, &raft.AppendEntriesRequest{Entries: entries[1:]})).request(kindAppend)
	require.NoError(t, err)
}

// After damage in its first entry an append allocates no other one.
func TestADamagedEntryEndsTheAppend(t *testing.T) {
	b := appendRequest(nil, &raft.AppendEntriesRequest{Entries: slices.Repeat([]*raft.Log{{}}, maxEntries)})
	length := len(appendRequest(nil, new(raft.AppendEntriesRequest))) + minEntry - 8 // of its data
	binary.BigEndian.PutUint32(b[length:], 1<<31)
	var err error
	allocations := testing.AllocsPerRun(10, func() { _, err = decoding(b).request(kindAppend) })
	require.ErrorIs(t, err, errShort)
	require.Less(t, allocations, 100.0)
}

// Any bytes are an error, or a message that is encoded to the same bytes.
func FuzzRequest(f *testing.F) {
	for k, list := range requests() {
		for _, m := range list {
			f.Add(byte(k), appendRequest(nil, m))
		}
	}
	f.Fuzz(func(t *testing.T, k byte, data []byte) {
		m, err := decoding(bytes.Clone(data)).request(kind(k))
		if err == nil {
			require.Equal(t, data, appendRequest([]byte{}, m))
		}
	})
}

// FuzzReply is FuzzRequest for replies.
func FuzzReply(f *testing.F) {
	for i, m := range replies() {
		b, err := appendReply(nil, m)
		require.NoError(f, err)
		f.Add(byte(i), b)
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		all := replies()
		m := empty(all[int(which)%len(all)])
		if decoding(bytes.Clone(data)).reply(m) == nil {
			b, err := appendReply([]byte{}, m)
			require.NoError(t, err)
			require.Equal(t, data, b)
		}
	})
}
