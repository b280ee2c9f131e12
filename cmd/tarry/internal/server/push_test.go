package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListOfDestinationsIsASettingOfTheServer(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	c, err := parseServerConfig(nil, none)
	require.NoError(t, err)
	require.True(t, c.PushAllow.Empty(), "nothing is allowed by default")
	c, err = parseServerConfig([]string{"--push-allow", "hooks.example.com,10.0.0.0/8:80"}, none)
	require.NoError(t, err)
	require.NoError(t, c.PushAllow.Check("push.url", "https://hooks.example.com/"))
	_, err = parseServerConfig([]string{"--push-allow", "https://hooks.example.com"}, none)
	require.ErrorContains(t, err, "push-allow")
	env := func(name string) (string, bool) { return "a.example", name == "TARRY_PUSH_ALLOW" }
	c, err = parseServerConfig(nil, env)
	require.NoError(t, err)
	require.False(t, c.PushAllow.Empty())
}
