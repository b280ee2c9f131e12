package transport

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeaderRoundTrip(t *testing.T) {
	for _, h := range []header{
		{kind: kindRaft}, {kind: kindRPC, clusterID: "c1"},
		{kind: kindRaft, shard: 1<<32 - 1, clusterID: strings.Repeat("x", maxID), to: "n1.a", from: strings.Repeat("y", maxID)},
	} {
		r := bytes.NewReader(append(h.append(nil), "payload"...))
		got, err := readHeader(r)
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.Equal(t, len("payload"), r.Len(), "not a byte more")
	}
}

// The first bytes are fixed for all future releases.
func TestHeaderBytes(t *testing.T) {
	require.Equal(t, "TARRY\x05\x02\x00\x00\x00\x07\x02c1\x04n2.b\x04n1.a", string(header{kind: kindRPC, shard: 7, clusterID: "c1", to: "n2.b", from: "n1.a"}.append(nil)))
	require.Equal(t, "\x02\x02c1\x00\x02no", string(answer{status: statusOtherCluster, clusterID: "c1", reason: "no"}.append(nil)))
}

func TestAnswerRoundTrip(t *testing.T) {
	long := strings.Repeat("r", 2*maxReason)
	for _, a := range []answer{{}, {clusterID: "c1"}, {status: statusBusy, clusterID: "c1", reason: "full"}, {status: statusVersion, reason: long}} {
		r := bytes.NewReader(append(a.append(nil), "payload"...))
		got, err := readAnswer(r)
		require.NoError(t, err)
		a.reason = a.reason[:min(len(a.reason), maxReason)]
		require.Equal(t, a, got)
		require.Equal(t, len("payload"), r.Len())
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(header{kind: kindRaft, shard: 3, clusterID: "c1", to: "n2.b", from: "n1.a"}.append(nil))
	f.Add([]byte("TARRY\x01"))
	f.Add([]byte("GET / HTTP/1.1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		h, err := readHeader(r)
		if err != nil {
			return
		}
		require.Equal(t, data[:len(data)-r.Len()], h.append(nil))
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(answer{status: statusBusy, clusterID: "c1", reason: "full"}.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		a, err := readAnswer(r)
		if err != nil {
			return
		}
		require.Equal(t, data[:len(data)-r.Len()], a.append(nil))
	})
}
