package framerpc

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// lateMessages returns the option, and what it was called with.
func lateMessages(t *testing.T) (Late, <-chan string) {
	late := make(chan string, 100)
	return Late{Do: func(message []byte) {
		m := new(wrapperspb.BytesValue)
		if err := decode(message, m); err != nil {
			t.Error(err)
		}
		late <- string(m.Value)
	}}, late
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-patient(t).Done():
		t.Fatal("nothing arrived")
	}
	return v
}

// The handler does not see the cancellation, or sees it too late.
func TestAReplyAfterTheCallerGaveUpIsNotLost(t *testing.T) {
	called, answer := make(chan struct{}), make(chan struct{})
	_, addr := serve(t, &service{call: func(ctx context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		close(called)
		<-ctx.Done()
		<-answer
		return wrapperspb.Bytes([]byte("job")), nil
	}}, admitAll)
	c := client(t, addr)
	option, late := lateMessages(t)
	ctx, cancel := context.WithCancel(patient(t))
	go func() {
		<-called
		cancel()
	}()
	err := c.Invoke(ctx, callMethod, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), option)
	requireLost(t, err, codes.Canceled, true)
	close(answer)
	require.Equal(t, "job", receive(t, late))
	require.Eventually(t, func() bool {
		c.session.calling.Lock()
		defer c.session.calling.Unlock()
		return len(c.session.calls) == 0
	}, patience, time.Millisecond)
}

func TestACallThatGaveUpIsForgottenOnceItsHandlerHasEnded(t *testing.T) {
	called := make(chan struct{})
	_, addr := serve(t, &service{call: func(ctx context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		close(called)
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}}, admitAll)
	c := client(t, addr)
	option, late := lateMessages(t)
	ctx, cancel := context.WithCancel(patient(t))
	go func() {
		<-called
		cancel()
	}()
	err := c.Invoke(ctx, callMethod, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue), option)
	requireLost(t, err, codes.Canceled, true)
	require.Eventually(t, func() bool {
		c.session.calling.Lock()
		defer c.session.calling.Unlock()
		return len(c.session.calls) == 0
	}, patience, time.Millisecond)
	require.Empty(t, late)
}

// The receiver has found that the stream is over, and receives no more.
func TestMessagesAfterAStreamHasEndedHereAreNotLost(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s := newSession(near)
	var late []string
	stream := &clientStream{inbox: make(chan []byte, inboxSize), over: make(chan struct{}), late: func(m []byte) { late = append(late, string(m)) }}
	x := &call{stream: stream, late: stream.late}
	id, err := s.begin(x)
	require.NoError(t, err)
	require.True(t, x.begin(), "it was written")
	there, sent := s.abandon(id, x)
	require.True(t, there && sent)
	stream.finish(context.Canceled)
	require.ErrorIs(t, stream.RecvMsg(new(wrapperspb.BytesValue)), context.Canceled)
	for i := range 100 {
		require.NoError(t, s.handle(head{exchange: id, kind: kindMessage}, []byte("m")))
		require.Len(t, late, i+1)
	}
	require.NoError(t, s.handle(head{exchange: id, kind: kindEnd}, nil))
	require.Empty(t, s.calls)
}

// The connection ends while replies and messages of streams wait to be written.
func TestWhatWasNotWrittenIsReportedToItsHandler(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	l := newLink(near)
	var unsent []string
	x := &exchange{Context: t.Context()}
	OnUnsent(x, func(m any) { unsent = append(unsent, string(m.(*wrapperspb.BytesValue).Value)) })
	frame := func(text string, k kind) outgoing {
		return outgoing{exchange: 1, kind: k, message: wrapperspb.Bytes([]byte(text)), from: x}
	}
	// Of a batch whose write fails at its first byte nothing has left.
	near.Close()
	_, err := l.writeBatch(nil, []outgoing{frame("a", kindReply), frame("b", kindMessage)}, nil)
	require.Error(t, err)
	require.Equal(t, []string{"a", "b"}, unsent)

	unsent = nil
	require.NoError(t, l.put(frame("c", kindReply)))
	l.close(errClosed)
	require.Equal(t, []string{"c"}, unsent)
	require.Error(t, l.put(frame("d", kindMessage)), "SendMsg fails: its caller knows")
	require.Equal(t, []string{"c"}, unsent)
}

// halfway is a connection of which a write fails after its first byte.
type halfway struct{ net.Conn }

func (h halfway) Write([]byte) (int, error)        { return 1, net.ErrClosed }
func (h halfway) SetWriteDeadline(time.Time) error { return nil }

func TestWhatMayHaveBeenWrittenIsNotReportedAsUnsent(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	l := newLink(halfway{near})
	var unsent []string
	x := &exchange{Context: t.Context()}
	OnUnsent(x, func(m any) { unsent = append(unsent, string(m.(*wrapperspb.BytesValue).Value[:1])) })
	large := make([]byte, keptBuffer)
	large[0] = 'a'
	_, err := l.writeBatch(nil, []outgoing{
		{exchange: 1, kind: kindReply, message: wrapperspb.Bytes(large), from: x},
		{exchange: 1, kind: kindReply, message: wrapperspb.Bytes([]byte("b")), from: x},
	}, nil)
	require.Error(t, err)
	require.Equal(t, []string{"b"}, unsent, "the other end may have the first")
}
