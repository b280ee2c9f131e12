package push

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A signature is valid for one id and one body: no byte can move from one to the other.
func TestASignatureSeparatesIDAndBody(t *testing.T) {
	require.NotEqual(t, sign(secret, "1", "a.b", []byte("c")), sign(secret, "1", "a", []byte("b.c")))
	require.NotEqual(t, sign(secret, "1", "a", []byte("b\nc")), sign(secret, "1", "a", []byte("b\n\nc")))
}
