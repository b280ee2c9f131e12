package framerpc

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The bytes are those that nodes of later releases must understand.
func TestFrameBytes(t *testing.T) {
	b, err := appendMessage(nil, 7, kindCall, "/s/m", wrapperspb.Bytes([]byte("xy")))
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\x12\x00\x00\x00\x00\x00\x00\x00\x07\x01\x04/s/m\x0a\x02xy", string(b))
	b, err = appendMessage(nil, 1, kindCancel, "", nil)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01\x04", string(b))
}

func TestDamagedFramesAreErrors(t *testing.T) {
	frame := func(length uint32, k kind, rest string) string {
		b := binary.BigEndian.AppendUint32(nil, length)
		b = binary.BigEndian.AppendUint64(b, 1)
		return string(append(b, byte(k))) + rest
	}
	for name, tt := range map[string]struct{ bytes, want string }{
		"too short":             {frame(8, kindReply, ""), "a frame of 8 bytes"},
		"too long":              {frame(maxFrame+1, kindReply, ""), "it may have"},
		"kind zero":             {frame(9, 0, ""), "unknown kind 0"},
		"a newer kind":          {frame(9, lastKind+1, ""), "upgrade the older node"},
		"cut in its head":       {frame(9, kindReply, "")[:10], io.ErrUnexpectedEOF.Error()},
		"without a method":      {frame(9, kindCall, "\x00"), "exceeds its frame"},
		"a method too long":     {frame(12, kindCall, "\x05abcde"), "exceeds its frame"},
		"cut in its method":     {frame(20, kindStream, "\x05ab"), io.ErrUnexpectedEOF.Error()},
		"cut before its method": {frame(20, kindStream, ""), io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFrameReader(strings.NewReader(tt.bytes)).head()
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A length alone does not allocate the memory for the frame.
func TestALengthDoesNotAllocate(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newFrameReader(bytes.NewReader(make([]byte, 100))).payload(maxFrame)
	runtime.ReadMemStats(&after)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// For any bytes of a caller, the server neither fails nor keeps anything: the end of the
// connection ends all handlers.
func FuzzServer(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	_, addr := serve(f, &service{call: echo, stream: double}, admitAll)
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		_, _ = conn.Write(data) // the server may have closed it
		_ = conn.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(io.Discard, conn)
		if late, ok := err.(net.Error); ok {
			require.False(t, late.Timeout(), "the connection ends")
		}
	})
}

// For any bytes of a server, every call and stream of the client ends.
func FuzzClient(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		here, there := net.Pipe()
		s := newSession(here)
		calls := []*call{{reply: make(chan reply, 1)}, {stream: &clientStream{inbox: make(chan []byte, inboxSize), over: make(chan struct{})}}}
		for _, x := range calls {
			_, err := s.begin(x)
			require.NoError(t, err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.run()
		}()
		go func() {
			_, _ = there.Write(data) // the session may have closed it
			there.Close()
		}()
		drain := func() {
			for {
				select {
				case <-calls[1].stream.inbox:
				case <-calls[1].stream.over:
					return
				}
			}
		}
		drain()
		<-calls[0].reply
		<-done
		require.NotErrorIs(t, calls[1].stream.err, nil)
	})
}

func seeds(f *testing.F) (out [][]byte) {
	var all []byte
	for i, o := range []outgoing{
		{exchange: 1, kind: kindCall, method: callMethod, message: wrapperspb.Bytes([]byte("x"))},
		{exchange: 2, kind: kindStream, method: streamMethod},
		{exchange: 2, kind: kindMessage, message: wrapperspb.UInt64(3)},
		{exchange: 2, kind: kindCancel},
		{exchange: 1, kind: kindReply, message: wrapperspb.Bytes([]byte("y"))},
		{exchange: 2, kind: kindEnd},
		{exchange: 1, kind: kindEnd, message: wrapperspb.Bytes([]byte("no status"))},
	} {
		b, err := appendMessage(nil, o.exchange, o.kind, o.method, o.message)
		require.NoError(f, err)
		all = append(all, b...)
		out = append(out, b, bytes.Clone(all), all[:len(all)-1-i%2])
	}
	return out
}

var _ grpc.ServiceRegistrar = (*Server)(nil)
var _ grpc.ClientConnInterface = (*Client)(nil)
