package replay

import (
	"io"
	"net"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestWhatWasReadComesFirst(t *testing.T) {
	for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
		t.Run(name, func(t *testing.T) {
			below, above := net.Pipe()
			t.Cleanup(func() { require.NoError(t, above.Close()) })
			go func() {
				_, _ = below.Write([]byte("lo"))
				_ = below.Close()
			}()
			c := New(above, []byte("hel"))
			require.Same(t, above, c.NetConn())
			got, err := io.ReadAll(wrap(c))
			require.NoError(t, err)
			require.Equal(t, "hello", string(got))
		})
	}
}
