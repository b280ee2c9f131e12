package leaderrpc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tarry/job"
)

// A failure that a leader sends is decoded as a failure, never as a success.
func FuzzFailure(f *testing.F) {
	for _, failure := range []*Failure{
		{Code: "not_found", Message: "m", RetryAfterMs: 1 << 62, NotLeader: true},
		{Code: "overloaded", RetryAfterMs: 9300000000000}, {Code: "overloaded", RetryAfterMs: -1}, {},
	} {
		b, err := proto.Marshal(failure)
		require.NoError(f, err)
		f.Add(b, uint32(codes.FailedPrecondition))
	}
	f.Fuzz(func(t *testing.T, data []byte, c uint32) {
		failure := new(Failure)
		if proto.Unmarshal(data, failure) != nil || c == uint32(codes.OK) {
			return
		}
		st, err := status.New(codes.Code(c), "m").WithDetails(failure)
		require.NoError(t, err)
		for _, read := range []bool{true, false} {
			err := outcome(errorOf(st.Err(), true), read)
			require.Error(t, err)
			require.Equal(t, failure.NotLeader, err == ErrNotLeader)
			if e, ok := err.(*job.Error); ok {
				require.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
			}
		}
	})
}

// Every error of a handler can be encoded.
func FuzzMessage(f *testing.F) {
	f.Add("m", "f", int64(5))
	f.Add("\xff", "\xc3", int64(-1))
	f.Fuzz(func(t *testing.T, message, field string, retry int64) {
		err := errorOf(statusOf(&job.Error{Code: job.CodeOverloaded, Message: message, Field: field, RetryAfter: time.Duration(retry)}), true)
		require.Equal(t, job.CodeOverloaded, job.CodeOf(err), "%v", err)
	})
}
