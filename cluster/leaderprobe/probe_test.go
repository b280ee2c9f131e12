package leaderprobe

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProbeDistinguishesPresentEndedAndAbsent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.Equal(t, present, probe(ctx, addr), "no call of Accept, as in a suspended process")
	require.NoError(t, l.Close())
	require.Equal(t, ended, probe(ctx, addr))
	cancel()
	require.Equal(t, absent, probe(ctx, addr))
	require.Equal(t, absent, probe(context.Background(), "nobody.invalid:1"))
}
