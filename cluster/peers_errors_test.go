package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a call between nodes fails with is shown to users without gRPC's own words,
// and keeps its code.
func TestErrorsOfCallsAreInPlainWords(t *testing.T) {
	invoke := func(err error) error {
		return plainErrors(t.Context(), "m", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
	}
	err := invoke(status.Error(codes.Unavailable, "the connection was closed"))
	require.EqualError(t, err, "the connection was closed")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.NoError(t, invoke(nil))
}
