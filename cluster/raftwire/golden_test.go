package raftwire

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func TestMessagesKeepTheirBytes(t *testing.T) {
	all := requests()
	for k := kindAppend; k <= kindTimeoutNow; k++ {
		request := all[k][0]
		frame := appendRequest(appendHead(nil, k), request)
		require.NoError(t, endFrame(frame, maxMessage))
		r := newFrameReader(bytes.NewReader(golden.Frozen(t, fmt.Sprintf("request-%d", k), frame)))
		gotKind, message, err := r.next(maxMessage)
		require.NoError(t, err)
		require.Equal(t, k, gotKind)
		got, err := r.decoder(message).request(k)
		require.NoError(t, err)
		require.Equal(t, request, got)
	}
	for i, reply := range replies() {
		frame, err := appendReply(appendHead(nil, kindReply), reply)
		require.NoError(t, err)
		require.NoError(t, endFrame(frame, maxReply))
		r := newFrameReader(bytes.NewReader(golden.Frozen(t, fmt.Sprintf("reply-%d", i+1), frame)))
		_, message, err := r.next(maxReply)
		require.NoError(t, err)
		got := empty(reply)
		require.NoError(t, r.decoder(message).reply(got))
		require.Equal(t, reply, got)
	}
}
