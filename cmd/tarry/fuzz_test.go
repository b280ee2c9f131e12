package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// usable proves that a configuration that was taken can be worked with.
func usable(t *testing.T, c *serverConfig) {
	require.NoError(t, c.check())
	for _, a := range []string{c.HTTPAddr, c.ClusterAddr, c.GossipAddr} {
		_, _, err := net.SplitHostPort(a)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, c.expect(), 0)
	require.NotContains(t, c.seeds(), "")
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
		if new(serverConfig).flags().Lookup(name) == nil || name == "config" {
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

// The values of clients' flags are within their range and print as what they
// are.
func FuzzFlagValues(f *testing.F) {
	for _, s := range []string{"250ms", "1h30m", "45", "1e-9", "9e9", "NaN", "-1", "Inf", "0x1p40", "4294967296", "2030-01-31T12:00:00Z", "2030-01-31T24:00:00+99:99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, again duration
		if d.Set(s) == nil {
			require.GreaterOrEqual(t, d.d, time.Duration(0))
			if text := d.String(); text != "" {
				require.NoError(t, again.Set(text))
				require.Equal(t, d, again)
			}
		}
		var n number
		if n.Set(s) == nil {
			want, err := strconv.ParseUint(n.String(), 10, 32)
			require.NoError(t, err)
			require.EqualValues(t, want, *n.v)
		}
		var i, same instant
		if i.Set(s) == nil && i.String() != "" {
			require.NoError(t, same.Set(i.String()))
			require.True(t, i.t.Equal(same.t))
		}
	})
}

// A command line of a client is understood or refused; nothing of it is lost.
func FuzzClientFlags(f *testing.F) {
	f.Add("add\x00--json\x00x\x00--\x00--json")
	f.Add("--addr\x00a:1,b:2\x00-json=false")
	f.Add("--patience=1e3")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		c := newCommand("test", "", "", "", "", 0, 9)
		err := c.cmd.ParseFlags(twoDashes(c.cmd, args))
		positional := c.flags.Args()
		if err == nil {
			require.LessOrEqual(t, len(positional), len(args))
			for _, p := range positional {
				require.Contains(t, args, p)
			}
		}
	})
}
