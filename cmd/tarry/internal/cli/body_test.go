package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColors(t *testing.T) {
	terminal := &HarmlessWriter{Terminal: true}
	for _, c := range []struct {
		to            any
		term, noColor string
		want          bool
	}{
		{terminal, "xterm", "", true},
		{terminal, "xterm", "1", false},
		{terminal, "dumb", "", false},
		{terminal, "", "", false},
		{&HarmlessWriter{}, "xterm", "", false},
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
	require.Equal(t, want, (&Terminal{}).Columns(head, rows))
	var screen bytes.Buffer
	colored := &Terminal{colors: true, Out: Printer{&HarmlessWriter{To: &screen, Terminal: true}}}
	require.NoError(t, colored.Table(head, rows))
	require.Contains(t, screen.String(), string(red)+"dead"+string(unstyled))
	require.Contains(t, screen.String(), string(bold)+"STATE"+string(unstyled))
	require.NotContains(t, screen.String(), "\x1b[2J")
	for _, s := range []style{bold, red, green, unstyled} {
		screen = *bytes.NewBufferString(strings.ReplaceAll(screen.String(), string(s), ""))
	}
	require.Equal(t, want, screen.String())
}

func TestBodiesInTables(t *testing.T) {
	for body, shown := range map[string]string{
		"":                            `""`,
		"plain text":                  "plain text",
		"tab\tand\nline":              `"tab\tand\nline"`,
		"\xff":                        `"\xff"`,
		strings.Repeat("a", 61):       strings.Repeat("a", 60) + "... (61 bytes)",
		strings.Repeat("€", 21):       strings.Repeat("€", 20) + "... (63 bytes)",
		strings.Repeat("ü", 31) + "x": strings.Repeat("ü", 30) + "... (63 bytes)",
		"x" + strings.Repeat("ü", 30): "x" + strings.Repeat("ü", 29) + "... (61 bytes)",
	} {
		require.Equal(t, shown, Show([]byte(body)))
	}
}
