package jobs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestAStreamOnTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for _, id := range []string{"a", "b", "c"} {
		s.OK("add", "--topic", "mail", "--id", id, "hello "+id)
	}
	out := s.OK("stream", "--topic", "none", "--topic", "mail", "--finish", "--max", "2")
	require.Equal(t, "a  0-1-1  attempt 1  hello a\nb  0-2-1  attempt 1  hello b\n", out)
	out = s.OK("stream", "--topic", "mail", "--max", "1", "--json", "--credit", "5", "--ttr", "5m")
	require.Contains(t, out, `"id":"c"`)
	require.Equal(t, 1, strings.Count(out, "\n"))
	for _, bad := range [][]string{{"stream"}, {"stream", "--topic", "t", "--credit", "0"}} {
		code, _, _ := s.Run(bad...)
		require.Equal(t, cli.ExitUsage, code)
	}
	code, _, errs := s.Run("stream", "--topic", "t", "--credit", "1001")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "credit is 1001")
}

func TestTheCommandOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/streaming.md")
	require.NoError(t, err)
	m := regexp.MustCompile("(?s)```sh\ntarry (.*?)\n```\n```\n(.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, m)
	s := clitest.NewShellOf(t, jobsRoot)
	for _, id := range []string{"m-1", "m-2", "m-3"} {
		s.OK("add", "--topic", "mail", "--id", id, "to cid")
	}
	s.OK("reserve", "--topic", "mail", "--max", "2", "--finish")
	require.Equal(t, m[2], s.OK(strings.Fields(m[1])...))
}
