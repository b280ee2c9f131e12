package framerpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	callMethod   = "/test.Service/Call"
	streamMethod = "/test.Service/Stream"
	patience     = time.Minute
)

// service is a service whose handlers a test chooses.
type service struct {
	call   func(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
	stream func(grpc.ServerStream) error
}

func (s *service) desc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "test.Service",
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			m := new(wrapperspb.BytesValue)
			if err := decode(m); err != nil {
				return nil, err
			}
			return s.call(ctx, m)
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", Handler: func(_ any, stream grpc.ServerStream) error { return s.stream(stream) }}},
	}
}

func echo(_ context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) { return m, nil }

func admitAll(context.Context, string) error { return nil }

func sameError(err error) error { return err }

// serve runs a server of svc until the test ends, and returns its address.
func serve(t testing.TB, svc *service, admit func(context.Context, string) error) (*Server, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(admit, sameError)
	s.RegisterService(svc.desc(), svc)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-served)
	})
	return s, l.Addr().String()
}

func client(t testing.TB, addr string) *Client {
	c := NewClient(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) })
	t.Cleanup(c.Close)
	return c
}

// invoke makes a call and returns the reply.
func invoke(ctx context.Context, c *Client, body []byte) ([]byte, error) {
	reply := new(wrapperspb.BytesValue)
	err := c.Invoke(ctx, callMethod, wrapperspb.Bytes(body), reply)
	return reply.Value, err
}

// requireLost requires a LostError with this code, of a request that was sent or not.
func requireLost(t *testing.T, err error, code codes.Code, sent bool) {
	t.Helper()
	lost, ok := errors.AsType[*LostError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, lost.Status.Code(), "%v", err)
	require.Equal(t, sent, lost.Sent, "%v", err)
}

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestCallsOfAnySizeReturnTheirOwnReplies(t *testing.T) {
	_, addr := serve(t, &service{call: echo}, admitAll)
	c := client(t, addr)
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			body := []byte(strings.Repeat(string(rune('a'+i%26)), i*i))
			if i == 7 {
				body = make([]byte, 5<<20)
			}
			got, err := invoke(patient(t), c, body)
			require.NoError(t, err)
			require.Len(t, got, len(body))
			require.Equal(t, body, append([]byte{}, got...))
		})
	}
	all.Wait()
}

// Messages with generated code take another path than those above.
func TestMessagesWithGeneratedCode(t *testing.T) {
	m := &jobpb.Add{Id: "a", Topic: "t", Body: []byte("body")}
	b, err := appendMessage(nil, 9, kindCall, "/s/m", m)
	require.NoError(t, err)
	r := newFrameReader(strings.NewReader(string(b)))
	h, err := r.head()
	require.NoError(t, err)
	require.Equal(t, head{exchange: 9, kind: kindCall, method: "/s/m", payload: m.SizeVT()}, h)
	payload, err := r.payload(h.payload)
	require.NoError(t, err)
	got := new(jobpb.Add)
	require.NoError(t, decode(payload, got))
	require.Equal(t, m.Body, got.Body)
	_, err = r.head()
	require.Equal(t, io.EOF, err)
}

func TestTheErrorOfAHandlerReachesItsCaller(t *testing.T) {
	st, err := status.New(codes.FailedPrecondition, "no").WithDetails(&jobpb.Ref{Id: "detail"})
	require.NoError(t, err)
	_, addr := serve(t, &service{call: func(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) { return nil, st.Err() }}, admitAll)
	_, err = invoke(patient(t), client(t, addr), nil)
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.Len(t, status.Convert(err).Details(), 1)
	require.NotErrorAs(t, err, new(*LostError))
}

func TestWhatIsNoServedMethodIsRefused(t *testing.T) {
	_, addr := serve(t, &service{call: echo}, admitAll)
	c := client(t, addr)
	err := c.Invoke(patient(t), "/test.Service/Other", wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
	require.Equal(t, codes.Unimplemented, status.Code(err))
	err = c.Invoke(patient(t), streamMethod, wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
	require.Equal(t, codes.Unimplemented, status.Code(err), "a stream is no call")
	err = c.Invoke(patient(t), callMethod, 7, new(wrapperspb.BytesValue))
	requireLost(t, err, codes.InvalidArgument, true)
	got, err := invoke(patient(t), c, []byte("goes on"))
	require.NoError(t, err)
	require.Equal(t, "goes on", string(got))
}

func TestARefusedCallIsNotRead(t *testing.T) {
	var called atomic.Bool
	svc := &service{call: func(ctx context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		called.Store(true)
		return m, nil
	}}
	_, addr := serve(t, svc, func(context.Context, string) error { return status.Error(codes.PermissionDenied, "no member") })
	// The message never arrives: only its length was sent.
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	b, _ := appendFrame(nil, 1, kindCall, callMethod, 100<<20)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write(b[:headerBytes+1+len(callMethod)])
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err = io.ReadAll(conn)
	require.NoError(t, err)

	c := client(t, addr)
	for range 3 {
		_, err = invoke(patient(t), c, make([]byte, 100_000))
		require.Equal(t, codes.PermissionDenied, status.Code(err), "and the connection can be used again")
	}
	require.False(t, called.Load())
}

func TestAnUnreachableServerWasSentNothing(t *testing.T) {
	dials := atomic.Int64{}
	c := NewClient(func(context.Context) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("connection refused")
	})
	defer c.Close()
	for range 100 {
		_, err := invoke(patient(t), c, nil)
		requireLost(t, err, codes.Unavailable, false)
	}
	require.Less(t, dials.Load(), int64(100), "there is a pause after a failure")
	_, err := c.NewStream(patient(t), nil, streamMethod)
	requireLost(t, err, codes.Unavailable, false)
	c.Close()
	_, err = invoke(patient(t), c, nil)
	requireLost(t, err, codes.Unavailable, false)
}

func TestAClientConnectsAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	svc := &service{call: echo}
	start := func(l net.Listener) *Server {
		s := NewServer(admitAll, sameError)
		s.RegisterService(svc.desc(), svc)
		go s.Serve(l)
		return s
	}
	s := start(l)
	c := client(t, l.Addr().String())
	_, err = invoke(patient(t), c, nil)
	require.NoError(t, err)
	s.Stop()
	require.Eventually(t, func() bool { // the end of the connection may not be known yet
		_, err := invoke(patient(t), c, nil)
		lost, ok := errors.AsType[*LostError](err)
		return ok && !lost.Sent
	}, patience, time.Millisecond)
	l, err = net.Listen("tcp", l.Addr().String())
	require.NoError(t, err)
	s = start(l)
	defer s.Stop()
	require.Eventually(t, func() bool {
		_, err := invoke(patient(t), c, nil)
		return err == nil
	}, patience, time.Millisecond)
}

func TestACanceledCallEndsItsHandler(t *testing.T) {
	ended := make(chan struct{})
	handling := make(chan struct{})
	_, addr := serve(t, &service{call: func(ctx context.Context, _ *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		close(handling)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}}, admitAll)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-handling
		cancel()
	}()
	_, err := invoke(ctx, client(t, addr), nil)
	requireLost(t, err, codes.Canceled, true)
	<-ended
}

func TestABrokenConnectionFailsCallsAndEndsHandlers(t *testing.T) {
	ended := make(chan struct{}, 10)
	handling := make(chan struct{}, 10)
	s, addr := serve(t, &service{call: func(ctx context.Context, _ *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		handling <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}}, admitAll)
	c := client(t, addr)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := invoke(t.Context(), c, nil)
			requireLost(t, err, codes.Unavailable, true)
		})
	}
	for range 10 {
		<-handling
	}
	s.Stop()
	all.Wait()
	require.Len(t, ended, 10, "Stop waits for handlers")
}

// gated is a connection whose writes wait until they are let through.
type gated struct {
	net.Conn
	arrived chan struct{}
	open    chan struct{}
	writes  atomic.Int64
}

func (g *gated) Write(b []byte) (int, error) {
	if g.writes.Add(1) == 1 {
		close(g.arrived)
	}
	<-g.open
	return g.Conn.Write(b)
}

// gate connects to addr with a connection whose first write waits.
func gate(t *testing.T, addr string) (*Client, *gated) {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	g := &gated{Conn: conn, arrived: make(chan struct{}), open: make(chan struct{})}
	c := NewClient(func(context.Context) (net.Conn, error) { return g, nil })
	t.Cleanup(c.Close)
	return c, g
}

func TestConcurrentCallsShareAWrite(t *testing.T) {
	_, addr := serve(t, &service{call: echo}, admitAll)
	c, g := gate(t, addr)
	var all sync.WaitGroup
	one := func() {
		_, err := invoke(patient(t), c, []byte("x"))
		require.NoError(t, err)
	}
	all.Go(one)
	<-g.arrived
	for range 100 {
		all.Go(one)
	}
	require.Eventually(t, func() bool {
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		return len(c.session.queue) == 100
	}, patience, time.Millisecond)
	close(g.open)
	all.Wait()
	require.EqualValues(t, 2, g.writes.Load())
}

func TestACallThatWaitsToBeWrittenWasNotSent(t *testing.T) {
	var calls atomic.Int64
	_, addr := serve(t, &service{call: func(_ context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		calls.Add(1)
		return m, nil
	}}, admitAll)
	c, g := gate(t, addr)
	var first sync.WaitGroup
	first.Go(func() {
		_, err := invoke(patient(t), c, nil)
		require.NoError(t, err)
	})
	<-g.arrived
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := invoke(ctx, c, nil)
	requireLost(t, err, codes.DeadlineExceeded, false)
	close(g.open)
	first.Wait()
	_, err = invoke(patient(t), c, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, calls.Load(), "and it is not sent later")
}

func TestTheBoundOnCallsOfAConnection(t *testing.T) {
	s := newSession(nil)
	for range maxExchanges {
		_, err := s.begin(new(call))
		require.NoError(t, err)
	}
	_, err := s.begin(new(call))
	requireLost(t, err, codes.Unavailable, false)
}
