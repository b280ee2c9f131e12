package cli

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The values of clients' flags are within their range and print as what they
// are.
func FuzzFlagValues(f *testing.F) {
	for _, s := range []string{"250ms", "1h30m", "45", "1e-9", "9e9", "NaN", "-1", "Inf", "0x1p40", "4294967296", "2030-01-31T12:00:00Z", "2030-01-31T24:00:00+99:99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, again Duration
		if d.Set(s) == nil {
			require.GreaterOrEqual(t, d.Value, time.Duration(0))
			if text := d.String(); text != "" {
				require.NoError(t, again.Set(text))
				require.Equal(t, d, again)
			}
		}
		var n Number
		if n.Set(s) == nil {
			want, err := strconv.ParseUint(n.String(), 10, 32)
			require.NoError(t, err)
			require.EqualValues(t, want, *n.Value)
		}
		var i, same Instant
		if i.Set(s) == nil && i.String() != "" {
			require.NoError(t, same.Set(i.String()))
			require.True(t, i.Time.Equal(same.Time))
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
		c := NewCommand("test", "", "", "", "", 0, 9)
		err := c.Cmd.ParseFlags(twoDashes(c.Cmd, args))
		positional := c.Flags.Args()
		if err == nil {
			require.LessOrEqual(t, len(positional), len(args))
			for _, p := range positional {
				require.Contains(t, args, p)
			}
		}
	})
}
