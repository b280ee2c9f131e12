package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextBodiesPrintAsTheyAre(t *testing.T) {
	s := newShell(t)
	long := strings.Repeat("long ", 20)
	for id, body := range map[string]string{"line": long, "json": `{"to":"ann"}`, "lines": "a\tb\nc\n", "binary": "\x00\xff\n" + long} {
		s.stdin = body
		s.ok("add", "-t", id, "-i", id, "-")
	}
	require.Contains(t, s.ok("get", "line"), "\nbody         "+long+"\n")
	require.Contains(t, s.ok("reserve", "-t", "json"), `{"to":"ann"}`)
	require.True(t, strings.HasSuffix(s.ok("get", "lines"), "\nbody         below\na\tb\nc\n"))
	require.Regexp(t, `^ID.*\nlines +0-\S+ +1 +in 1m\na\tb\nc\n$`, s.ok("reserve", "-t", "lines"))
	require.Contains(t, s.ok("get", "binary"), `"\x00\xff\nlong`)
}

func TestRawBodies(t *testing.T) {
	s := newShell(t)
	binary := "\x00\xff\x1b[31m no newline"
	s.stdin = binary
	for _, id := range []string{"a", "b", "c"} {
		s.ok("add", "-t", "t", "-i", id, "-")
	}
	require.Equal(t, binary, s.ok("get", "a", "--raw"))
	require.Equal(t, binary, s.ok("reserve", "-t", "t", "-r", "--finish"))
	require.Equal(t, binary+"\n"+binary+"\n", s.ok("stream", "-t", "t", "-r", "-n", "2", "--credit", "2"))
	code, _, errs := s.run("get", "b", "--raw", "--json")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "--raw and --json")

	var screen bytes.Buffer
	require.NoError(t, printer{&harmlessWriter{to: &screen, terminal: true}}.raw([]byte(binary)))
	requireHarmless(t, screen.String(), 0)
}

func TestColors(t *testing.T) {
	terminal := &harmlessWriter{terminal: true}
	for _, c := range []struct {
		to            any
		term, noColor string
		want          bool
	}{
		{terminal, "xterm", "", true},
		{terminal, "xterm", "1", false},
		{terminal, "dumb", "", false},
		{terminal, "", "", false},
		{&harmlessWriter{}, "xterm", "", false},
		{&bytes.Buffer{}, "xterm", "", false},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColor)
		require.Equal(t, c.want, mayColor(c.to), "%+v", c)
	}
}

func TestColouredTablesHaveTheSameColumns(t *testing.T) {
	head, rows := []string{"ID", "STATE", "REASON"}, [][]string{{"a\x1b[2J", "dead", ""}, {"ünï", "ready", "x"}}
	want := "ID          STATE  REASON\na\\u001b[2J  dead\nünï         ready  x\n"
	require.Equal(t, want, (&terminal{}).columns(head, rows))
	var screen bytes.Buffer
	colored := &terminal{colors: true, out: printer{&harmlessWriter{to: &screen, terminal: true}}}
	require.NoError(t, colored.table(head, rows))
	require.Contains(t, screen.String(), string(red)+"dead"+string(unstyled))
	require.Contains(t, screen.String(), string(bold)+"STATE"+string(unstyled))
	require.NotContains(t, screen.String(), "\x1b[2J")
	for _, s := range []style{bold, red, green, unstyled} {
		screen = *bytes.NewBufferString(strings.ReplaceAll(screen.String(), string(s), ""))
	}
	require.Equal(t, want, screen.String())
}
