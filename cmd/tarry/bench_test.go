package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	for says, args := range map[string][]string{
		"--addr loads nodes":     {"--addr", "x:1", "--start", "3"},
		"--start is 10":          {"--start", "10"},
		"--protocol is \"smtp\"": {"--all", "--protocol", "smtp"},
		"--server says what":     {"--server", "beanstalkd", "--protocol", "beanstalkd"},
		"--target chooses":       {"--addr", "x:1", "--target", "leader"},
		"--secure closes":        {"--addr", "x:1", "--secure"},
		"not \"now\"":            {"now"},
		"not defined: --x":       {"--x"},
		"invalid value \"many\"": {"--connections", "many"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, cli.ExitUsage, run(context.Background(), append([]string{"bench"}, args...), nil, &out, &errs), "%v", args)
		require.Contains(t, errs.String(), says)
		require.Empty(t, out.String())
	}
	var out, errs bytes.Buffer
	require.Equal(t, cli.ExitFailed, run(context.Background(), []string{"bench", "--scenario", "sleep"}, nil, &out, &errs))
	require.Contains(t, errs.String(), "add-batch, add, cycle")
}
