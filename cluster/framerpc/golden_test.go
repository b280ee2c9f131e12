package framerpc

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func TestFramesKeepTheirBytes(t *testing.T) {
	for k := kindCall; k <= lastKind; k++ {
		method := ""
		if k.begins() {
			method = "/tarry.Node/Propose"
		}
		frame, room := appendFrame(nil, 0x0102030405060708, k, method, 3)
		copy(room, "abc")
		r := newFrameReader(bytes.NewReader(golden.Frozen(t, fmt.Sprintf("frame-%d", k), frame)))
		h, err := r.head()
		require.NoError(t, err)
		require.Equal(t, head{exchange: 0x0102030405060708, kind: k, method: method, payload: 3}, h)
		payload, err := r.payload(h.payload)
		require.NoError(t, err)
		require.Equal(t, "abc", string(payload))
	}
}
