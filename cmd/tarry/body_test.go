package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestTextBodiesPrintAsTheyAre(t *testing.T) {
	s := newShell(t)
	long := strings.Repeat("long ", 20)
	for id, body := range map[string]string{"line": long, "json": `{"to":"ann"}`, "lines": "a\tb\nc\n", "binary": "\x00\xff\n" + long} {
		s.Stdin = body
		s.OK("add", "-t", id, "-i", id, "-")
	}
	require.Contains(t, s.OK("get", "line"), "\nbody         "+long+"\n")
	require.Contains(t, s.OK("reserve", "-t", "json"), `{"to":"ann"}`)
	require.True(t, strings.HasSuffix(s.OK("get", "lines"), "\nbody         below\na\tb\nc\n"))
	require.Regexp(t, `^ID.*\nlines +0-\S+ +1 +in 1m\na\tb\nc\n$`, s.OK("reserve", "-t", "lines"))
	require.Contains(t, s.OK("get", "binary"), `"\x00\xff\nlong`)
}

func TestRawBodies(t *testing.T) {
	s := newShell(t)
	binary := "\x00\xff\x1b[31m no newline"
	s.Stdin = binary
	for _, id := range []string{"a", "b", "c"} {
		s.OK("add", "-t", "t", "-i", id, "-")
	}
	require.Equal(t, binary, s.OK("get", "a", "--raw"))
	require.Equal(t, binary, s.OK("reserve", "-t", "t", "-r", "--finish"))
	require.Equal(t, binary+"\n"+binary+"\n", s.OK("stream", "-t", "t", "-r", "-n", "2", "--credit", "2"))
	code, _, errs := s.Run("get", "b", "--raw", "--json")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--raw and --json")

	var screen bytes.Buffer
	require.NoError(t, cli.Printer{To: &cli.HarmlessWriter{To: &screen, Terminal: true}}.Raw([]byte(binary)))
	clitest.RequireHarmless(t, screen.String(), 0)
}
