package ops

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"tarry/bench"
)

func parseBench(args []string) (*benchFlags, error) {
	first := &benchFlags{config: bench.Defaults(bench.Add, bench.HTTP)}
	line := pflag.NewFlagSet("", pflag.ContinueOnError)
	first.register(line)
	if err := line.Parse(args); err != nil {
		return nil, err
	}
	return benchOf(first, line)
}

func TestBenchDefaultsFollowTheScenario(t *testing.T) {
	for _, c := range []struct {
		args               []string
		connections, batch int
	}{
		{nil, 64, 100},
		{[]string{"--scenario", "add-batch"}, 16, 100},
		{[]string{"--scenario", "pending"}, 4, 1000},
		{[]string{"--scenario", "pending", "--batch", "7"}, 4, 7},
		{[]string{"--scenario", "delayed", "--protocol", "beanstalkd"}, 32, 100},
		{[]string{"--connections", "5", "--scenario", "add-batch"}, 5, 100},
	} {
		f, err := parseBench(c.args)
		require.NoError(t, err)
		require.Equal(t, c.connections, f.config.Connections, "%v", c.args)
		require.Equal(t, c.batch, f.config.Batch, "%v", c.args)
	}
	for want, args := range map[string][]string{"127.0.0.1:7300": nil, "127.0.0.1:11300": {"--protocol", "beanstalkd"}, "q:1": {"--addr", "q:1"}} {
		f, err := parseBench(args)
		require.NoError(t, err)
		require.Equal(t, []string{want}, f.config.Addrs)
	}
}
