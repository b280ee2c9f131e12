package golden

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	for _, n := range []int{0, 1, bytesPerLine, bytesPerLine + 1, 1000} {
		b := bytes.Repeat([]byte{0xA5, 0}, n)[:n]
		got, err := decode("# a comment\n" + string(encode(b)))
		require.NoError(t, err)
		require.Equal(t, b, got)
	}
	_, err := decode("0g\n")
	require.Error(t, err)
}

func TestFrozenReturnsTheBytesOfTheFile(t *testing.T) {
	require.Equal(t, []byte("golden"), Frozen(t, "example", []byte("golden")))
}
