package testseed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeedIsThatOfTheEnvironment(t *testing.T) {
	t.Setenv("TEST_SEED", "18446744073709551615")
	require.Equal(t, ^uint64(0), New())
	t.Setenv("TEST_SEED", "seven")
	require.PanicsWithValue(t, `TEST_SEED is no seed: strconv.ParseUint: parsing "seven": invalid syntax`, func() { New() })
	t.Setenv("TEST_SEED", "")
	require.NotEqual(t, New(), New())
}
