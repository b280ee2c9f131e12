package framerpc

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A caller that sends calls and reads no reply holds what is bounded, and then is not read.
func TestRepliesThatNobodyReadsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		admit func(context.Context, string) error
		most  int
	}{
		"refused":  {func(context.Context, string) error { return status.Error(codes.PermissionDenied, "no member") }, maxRefusals},
		"answered": {admitAll, maxExchanges},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := &service{call: echo}
				s := NewServer(c.admit, sameError)
				s.RegisterService(svc.desc(), svc)
				caller, called := net.Pipe()
				conn := s.newConn(t.Context(), called)
				frame, err := appendMessage(nil, 0, kindCall, callMethod, wrapperspb.Bytes(nil))
				require.NoError(t, err)
				served, sent := make(chan struct{}), make(chan struct{})
				go func() { defer close(served); conn.serve() }()
				go func() {
					defer close(sent)
					for i := range 4 * maxExchanges {
						frame[11], frame[10], frame[9] = byte(i), byte(i>>8), byte(i>>16)
						if _, err := caller.Write(frame); err != nil {
							return
						}
					}
				}()
				synctest.Wait()
				conn.link.mu.Lock()
				waiting := len(conn.queue)
				conn.link.mu.Unlock()
				require.LessOrEqual(t, waiting, c.most)
				caller.Close()
				<-sent
				<-served
			})
		})
	}
}
