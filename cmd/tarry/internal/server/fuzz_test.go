package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// usable proves that a configuration that was taken can be worked with.
func usable(t *testing.T, c *Config) {
	require.NoError(t, c.check())
	for _, a := range []string{c.HTTPAddr, c.ClusterAddr, c.GossipAddr} {
		_, _, err := net.SplitHostPort(a)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, c.expect(), 0)
	require.NotContains(t, c.Seeds(), "")
}

// A configuration file is understood or refused by an error that names it.
func FuzzConfigFile(f *testing.F) {
	for _, s := range []string{
		"node-id: n1\njoin: [a:1, 'b:2']\nbootstrap-expect: 3\nlog-level: debug\n",
		"node-id: 12\n", "cache-bytes: 99999999999999999999\n", "a: &a [*a]\n", "config: other.yaml\n",
		"a: &a [x,x]\nb: &b [*a,*a]\njoin: [*b,*b]\n", "? [x]\n: y\n", "- 1\n", "!!binary node-id: x\n", "\xff\xfe", "<<: {node-id: x}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "tarry.yaml")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		c, err := parseServerConfig([]string{"--config", file}, noEnv)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		usable(t, c)
	})
}

// Flags, and the same settings as environment variables, are taken or refused
// alike.
func FuzzSettings(f *testing.F) {
	f.Add("node-id", "n1")
	f.Add("join", "a:1, ,b:2,")
	f.Add("bootstrap-expect", "-2")
	f.Add("cache-bytes", "0x7fffffffffffffff")
	f.Add("http-addr", "[::1]:7300")
	f.Add("log-level", "INFO+3")
	f.Fuzz(func(t *testing.T, name, value string) {
		if new(Config).Flags().Lookup(name) == nil || name == "config" {
			return
		}
		byFlag, ferr := parseServerConfig([]string{"--" + name + "=" + value}, noEnv)
		env := func(key string) (string, bool) {
			return value, key == "TARRY_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		}
		byEnv, eerr := parseServerConfig(nil, env)
		require.Equal(t, ferr == nil, eerr == nil, "%v\n%v", ferr, eerr)
		if ferr == nil {
			usable(t, byFlag)
			require.Equal(t, byFlag, byEnv)
		}
	})
}
