package push

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The end of the id cannot be shifted into the body: a signature is good for one
// id and one body.
func TestASignatureTellsTheIDFromTheBody(t *testing.T) {
	require.NotEqual(t, sign(secret, "1", "a.b", []byte("c")), sign(secret, "1", "a", []byte("b.c")))
	require.NotEqual(t, sign(secret, "1", "a", []byte("b\nc")), sign(secret, "1", "a", []byte("b\n\nc")))
}
