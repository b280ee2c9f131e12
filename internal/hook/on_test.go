//go:build chaos

package hook

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func environ(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestUnknownHooksAreRefused(t *testing.T) {
	for _, bad := range [][]string{
		{"TARRY_HOOK_MUTANT", "lose-everything"},
		{"TARRY_HOOK_KILL", "before-lunch:1"},
		{"TARRY_HOOK_KILL", "before-apply"},
		{"TARRY_HOOK_KILL", "before-apply:0"},
		{"TARRY_HOOK_KILL", "before-apply:x"},
	} {
		_, err := read(environ(bad...))
		require.ErrorContains(t, err, bad[1])
		require.Panics(t, func() { mustRead(environ(bad...)) })
	}
}

func TestEveryNameIsKnown(t *testing.T) {
	for _, p := range Points() {
		h, err := read(environ("TARRY_HOOK_KILL", p+":3"))
		require.NoError(t, err)
		require.False(t, h.kill.due(p))
		require.False(t, h.kill.due("another"))
		require.False(t, h.kill.due(p))
		require.True(t, h.kill.due(p), "the third time")
		require.False(t, h.kill.due(p))
	}
	for _, m := range Mutants() {
		h, err := read(environ("TARRY_HOOK_MUTANT", m))
		require.NoError(t, err)
		require.Equal(t, m, h.mutant)
	}
}

func TestClockFollowsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	h, err := read(environ("TARRY_HOOK_CLOCK", file))
	require.NoError(t, err)
	now := time.Now()
	set := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	require.Zero(t, h.clock.get(now), "no file yet")
	set("1500\n")
	require.Zero(t, h.clock.get(now.Add(clockEvery-1)), "not read again so soon")
	require.Equal(t, 1500*time.Millisecond, h.clock.get(now.Add(clockEvery)))
	set("-3600000")
	require.Equal(t, -time.Hour, h.clock.get(now.Add(2*clockEvery)))
	set("")
	require.Equal(t, -time.Hour, h.clock.get(now.Add(3*clockEvery)), "half written")
}

func TestWithoutAnEnvironmentNothingHappens(t *testing.T) {
	Point(BeforeApply)
	require.Zero(t, Clock())
	require.False(t, Mutant(DropAdd))
}
