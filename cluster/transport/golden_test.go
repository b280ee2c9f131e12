package transport

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func TestTheHeaderAndItsAnswerKeepTheirBytes(t *testing.T) {
	h := header{kind: kindFrames, shard: 7, clusterID: "c1", to: "n2.b", from: "n1.a"}
	got, err := readHeader(bytes.NewReader(golden.Frozen(t, "header-5", h.append(nil))))
	require.NoError(t, err)
	require.Equal(t, h, got)

	a := answer{status: statusOtherServer, clusterID: "c1", reason: "n3.c is here"}
	reply, err := readAnswer(bytes.NewReader(golden.Frozen(t, "answer-5", a.append(nil))))
	require.NoError(t, err)
	require.Equal(t, a, reply)
}

// A node of any release understands why one of another release refuses it.
func TestWhatIsTheSameInAllVersionsKeepsItsBytes(t *testing.T) {
	require.Equal(t, "TARRY", magic)
	for version := byte(0); version < 255; version++ {
		if version == wireVersion {
			continue
		}
		_, err := readHeader(bytes.NewReader(append([]byte(magic), version)))
		require.Equal(t, versionError{version}, err)
	}
}
