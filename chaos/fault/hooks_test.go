package fault

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/hook"
)

func TestPointsAreThoseOfTheServer(t *testing.T) {
	known := map[string]bool{}
	for _, p := range points {
		require.Contains(t, hook.Points(), p.name)
		known[p.name] = true
	}
	require.Len(t, known, len(hook.Points()), "every point is drawn")
}

func TestClocksFollowTheirCourse(t *testing.T) {
	file := t.TempDir() + "/clock"
	for want, off := range map[string]time.Duration{
		"-3600000\n": back(time.Hour, time.Minute),
		"1000\n":     forward(time.Second, time.Minute),
		"-500\n":     slow(time.Hour, time.Second),
		"500\n":      fast(time.Hour, time.Second),
	} {
		require.NoError(t, setClock(file, off))
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
}
