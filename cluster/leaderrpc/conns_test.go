package leaderrpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
)

func TestANodeThatNobodyAsksForIsNotDialedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dialed atomic.Int32
		conns := NewConns(func(context.Context, string, string) (net.Conn, error) {
			dialed.Add(1)
			return nil, errors.New("there is none")
		})
		defer conns.Close()
		c, err := conns.Get(t.Context(), "n1.a", "192.0.2.1:7301")
		require.NoError(t, err)
		require.Error(t, c.Invoke(t.Context(), "/x/y", &emptypb.Empty{}, &emptypb.Empty{}))
		time.Sleep(2 * idle)
		before := dialed.Load()
		time.Sleep(time.Hour)
		require.Equal(t, before, dialed.Load())
		require.Error(t, c.Invoke(t.Context(), "/x/y", &emptypb.Empty{}, &emptypb.Empty{}))
		require.Greater(t, dialed.Load(), before, "a call dials again")
	})
}
