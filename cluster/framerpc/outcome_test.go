package framerpc

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What happens to a call, in every order. "not sent" is only right while the writer has not taken
// it, and a reply that has arrived wins over the end of the caller's context and of the connection.
func TestTheOutcomeOfACallInEveryOrderOfEvents(t *testing.T) {
	const (
		written = "written"
		replied = "replied"
		ends    = "the context ends"
		breaks  = "the connection breaks"
	)
	for _, c := range []struct {
		name   string
		events []string
		sent   bool
		code   codes.Code // OK: it gets the reply
	}{
		{"queued, ends", []string{ends}, false, codes.Canceled},
		{"queued, breaks", []string{breaks}, false, codes.Unavailable},
		{"queued, ends, breaks", []string{ends, breaks}, false, codes.Canceled},
		{"queued, breaks, ends", []string{breaks, ends}, false, codes.Unavailable},
		{"queued, ends, written", []string{ends, written}, false, codes.Canceled},
		{"written, ends", []string{written, ends}, true, codes.Canceled},
		{"written, breaks", []string{written, breaks}, true, codes.Unavailable},
		{"written, breaks, ends", []string{written, breaks, ends}, true, codes.Unavailable},
		{"written, ends, breaks", []string{written, ends, breaks}, true, codes.Canceled},
		{"written, ends, replied", []string{written, ends, replied}, true, codes.Canceled},
		{"written, replied", []string{written, replied}, true, codes.OK},
		{"written, replied, ends", []string{written, replied, ends}, true, codes.OK},
		{"written, replied, breaks, ends", []string{written, replied, breaks, ends}, true, codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			defer far.Close()
			s := newSession(near)
			x := newCall()
			id, err := s.begin(x)
			require.NoError(t, err)
			require.NoError(t, s.put(outgoing{exchange: id, kind: kindCall, of: x}))
			var got *reply
			for _, event := range c.events {
				switch event {
				case written:
					taken := s.take(nil)
					require.Equal(t, got == nil, len(taken) == 1, "who was told that it was not sent can rely on it")
				case replied:
					require.NoError(t, s.handle(head{exchange: id, kind: kindReply}, []byte("done")))
				case ends:
					r := s.giveUp(id, x, context.Canceled)
					got = &r
				case breaks:
					s.close(errClosed)
					s.fail(errClosed)
				}
			}
			if got == nil {
				got = new(<-x.reply)
			}
			if c.code == codes.OK {
				require.NoError(t, got.err)
				require.Equal(t, []byte("done"), got.payload)
				return
			}
			requireLost(t, got.err, c.code, c.sent)
		})
	}
}

// Callers give up at about the moment in which the reply arrives, and connections break. A call
// that is reported as not sent was not done: it would be sent again.
func TestACallThatWasDoneIsNeverReportedAsNotSent(t *testing.T) {
	const callers, calls = 8, 1000
	var mu sync.Mutex
	done := map[uint64]bool{}
	_, addr := serve(t, &service{call: func(_ context.Context, m *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		mu.Lock()
		defer mu.Unlock()
		done[binary.BigEndian.Uint64(m.Value)] = true
		return m, nil
	}}, admitAll)
	var open atomic.Pointer[net.Conn]
	c := NewClient(func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			open.Store(&conn)
		}
		return conn, err
	})
	t.Cleanup(c.Close)
	var replied, unknown, breaks atomic.Int64
	var notSent sync.Map
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			limit := 200 * time.Microsecond // follows how long a call takes
			for i := range calls {
				if rand.IntN(500) == 0 {
					if conn := open.Load(); conn != nil {
						breaks.Add(1)
						(*conn).Close()
					}
				}
				id := uint64(caller*calls + i)
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err := invoke(ctx, c, binary.BigEndian.AppendUint64(nil, id))
				cancel()
				lost, ok := errors.AsType[*LostError](err)
				switch {
				case err == nil:
					replied.Add(1)
					limit -= limit / 20
				case ok && lost.Sent:
					unknown.Add(1)
					limit += limit / 20
				case ok:
					notSent.Store(id, lost)
					limit += limit / 20
				default:
					t.Error(err)
				}
				limit = max(limit, time.Microsecond)
			}
		})
	}
	all.Wait()
	unsent, wrong := 0, 0
	mu.Lock()
	defer mu.Unlock()
	notSent.Range(func(id, _ any) bool {
		unsent++
		if done[id.(uint64)] {
			wrong++
		}
		return true
	})
	t.Logf("%d replies, %d unknown, %d not sent; %d connections broken", replied.Load(), unknown.Load(), unsent, breaks.Load())
	require.NotZero(t, replied.Load())
	require.NotZero(t, unknown.Load())
	require.NotZero(t, unsent)
	require.Zero(t, wrong, "calls that were done are reported as not sent")
}
