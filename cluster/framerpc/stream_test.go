package framerpc

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// double sends each number twice.
func double(s grpc.ServerStream) error {
	for {
		m := new(wrapperspb.UInt64Value)
		if err := s.RecvMsg(m); err != nil {
			return err
		}
		for range 2 {
			if err := s.SendMsg(wrapperspb.UInt64(m.Value)); err != nil {
				return err
			}
		}
	}
}

func TestMessagesOfAStreamKeepTheirOrder(t *testing.T) {
	const messages, streams = 5000, 3
	_, addr := serve(t, &service{stream: double, call: echo}, admitAll)
	c := client(t, addr)
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			s, err := c.NewStream(ctx, nil, streamMethod)
			require.NoError(t, err)
			all.Go(func() {
				for i := range uint64(messages) {
					require.NoError(t, s.SendMsg(wrapperspb.UInt64(i)))
				}
			})
			for i := range uint64(2 * messages) {
				m := new(wrapperspb.UInt64Value)
				require.NoError(t, s.RecvMsg(m))
				require.Equal(t, i/2, m.Value)
			}
		})
	}
	for range 100 {
		_, err := invoke(patient(t), c, []byte("between them"))
		require.NoError(t, err)
	}
	all.Wait()
}

func TestHowAStreamEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		handler func(grpc.ServerStream) error
		want    func(*testing.T, error)
	}{
		"without an error": {func(s grpc.ServerStream) error { return s.SendMsg(wrapperspb.UInt64(1)) },
			func(t *testing.T, err error) { require.Equal(t, io.EOF, err) }},
		"with an error": {func(s grpc.ServerStream) error {
			if err := s.SendMsg(wrapperspb.UInt64(1)); err != nil {
				return err
			}
			return status.Error(codes.InvalidArgument, "waiter 7 waits already")
		}, func(t *testing.T, err error) { require.Equal(t, codes.InvalidArgument, status.Code(err)) }},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := serve(t, &service{stream: tt.handler}, admitAll)
			ctx, cancel := context.WithCancel(patient(t))
			defer cancel()
			s, err := client(t, addr).NewStream(ctx, nil, streamMethod)
			require.NoError(t, err)
			require.NoError(t, s.RecvMsg(new(wrapperspb.UInt64Value)), "what was sent before the end arrives")
			tt.want(t, s.RecvMsg(new(wrapperspb.UInt64Value)))
			require.Equal(t, io.EOF, s.SendMsg(wrapperspb.UInt64(1)))
		})
	}
}

func TestACanceledStreamEndsAtBothEnds(t *testing.T) {
	handler := make(chan error, 1)
	_, addr := serve(t, &service{stream: func(s grpc.ServerStream) error {
		err := double(s)
		handler <- err
		return err
	}}, admitAll)
	ctx, cancel := context.WithCancel(patient(t))
	s, err := client(t, addr).NewStream(ctx, nil, streamMethod)
	require.NoError(t, err)
	require.NoError(t, s.SendMsg(wrapperspb.UInt64(1)))
	require.NoError(t, s.RecvMsg(new(wrapperspb.UInt64Value)))
	cancel()
	require.ErrorIs(t, <-handler, context.Canceled)
	for err = nil; err == nil; { // the second copy may have arrived
		err = s.RecvMsg(new(wrapperspb.UInt64Value))
	}
	require.Equal(t, codes.Canceled, status.Code(err))
}

func TestAStreamEndsWithItsConnection(t *testing.T) {
	handler := make(chan error, 1)
	server, addr := serve(t, &service{stream: func(s grpc.ServerStream) error {
		err := double(s)
		handler <- err
		return err
	}}, admitAll)
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	s, err := client(t, addr).NewStream(ctx, nil, streamMethod)
	require.NoError(t, err)
	require.NoError(t, s.SendMsg(wrapperspb.UInt64(1)))
	require.NoError(t, s.RecvMsg(new(wrapperspb.UInt64Value)))
	server.Stop()
	require.ErrorIs(t, <-handler, context.Canceled)
	for err = nil; err == nil; {
		err = s.RecvMsg(new(wrapperspb.UInt64Value))
	}
	require.Equal(t, codes.Unavailable, status.Code(err))
}

// A receiver that is slow holds up the connection and loses nothing.
func TestASlowReceiverOfAStream(t *testing.T) {
	const messages = 3 * (inboxSize + maxWaiting)
	_, addr := serve(t, &service{stream: func(s grpc.ServerStream) error {
		for i := range uint64(messages) {
			if err := s.SendMsg(wrapperspb.UInt64(i)); err != nil {
				return err
			}
		}
		return nil
	}}, admitAll)
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	s, err := client(t, addr).NewStream(ctx, nil, streamMethod)
	require.NoError(t, err)
	stream := s.(*clientStream)
	require.Eventually(t, func() bool { return len(stream.inbox) == inboxSize }, patience, patience/1000)
	for i := range uint64(messages) {
		m := new(wrapperspb.UInt64Value)
		require.NoError(t, s.RecvMsg(m))
		require.Equal(t, i, m.Value)
	}
	require.Equal(t, io.EOF, s.RecvMsg(new(wrapperspb.UInt64Value)))
}
