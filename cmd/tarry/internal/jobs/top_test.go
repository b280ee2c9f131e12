package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestTopShowsTheBusiestTopicsFirst(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for range 3 {
		s.OK("add", "-t", "busy", "x")
	}
	s.OK("add", "-t", "idle", "-d", "1h", "x")
	s.Bury("broken", "b", "why")
	out := s.OK("top", "--rounds", "2", "--interval", "10ms")
	require.Regexp(t, `(?s)^\d\d:\d\d:\d\d  topics: 3  delayed: 1  ready: 3  reserved: 0  dead: 1  added: 0.0/s.*\nTOPIC +DELAYED.*\nbusy +0 +3 +0 +0 +0.0 +0.0 .*not paused\n.*topics: 3`, out)
	require.Regexp(t, `(?s)TOPIC[^\n]*\nbroken [^\n]*\nbusy [^\n]*\nidle [^\n]*\n$`, s.OK("top", "--rounds", "1", "--sort", "name"))
	require.Regexp(t, `TOPIC[^\n]*\nbroken [^\n]*\n$`, s.OK("top", "--rounds", "1", "--sort", "dead", "-n", "1"))
	var row struct {
		Topic string
		Ready int
		Rate  *float64 `json:"added_per_second"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.OK("top", "--rounds", "1", "-n", "1", "--json")), &row))
	require.Equal(t, "busy", row.Topic)
	require.Equal(t, 3, row.Ready)
	require.NotNil(t, row.Rate)
	code, _, errs := s.Run("top", "--sort", "colour")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `no column "colour"`)
}

func TestTopComputesRates(t *testing.T) {
	now := time.Unix(2e9, 0)
	w := &top{t: &cli.Terminal{Clock: cli.Clock{Now: func() time.Time { return now }}}}
	look := func(added, finished uint64) topRow {
		rows := []topRow{{Topic: client.Topic{Name: "t", Added: added, Finished: finished}}}
		w.rates(rows, map[string]client.Topic{"t": rows[0].Topic})
		now = now.Add(2 * time.Second)
		return rows[0]
	}
	require.Zero(t, look(100, 50).added)
	row := look(110, 51)
	require.Equal(t, []float64{5, 0.5}, []float64{row.added, row.finished})
	require.Zero(t, look(1, 0).added, "the topic was removed and is new")
}

func TestTopOnATerminalChangesInPlaceAndLeavesNoTrace(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("add", "-t", "mail", "x")
	c, err := client.New([]string{os.Getenv(cli.AddrEnv)})
	require.NoError(t, err)
	defer c.Close()
	var screen bytes.Buffer
	to := &cli.HarmlessWriter{To: &screen, Terminal: true}
	w := &top{t: &cli.Terminal{Client: c, Out: cli.Printer{To: to}, Notes: cli.NotePrinter{Printer: cli.Printer{To: to}}, Clock: cli.Clock{Now: time.Now}}}
	require.NoError(t, w.run(t.Context(), time.Millisecond, 2))
	text := screen.String()
	require.True(t, strings.HasPrefix(text, screenOwn+screenTop))
	require.True(t, strings.HasSuffix(text, screenBack))
	require.Equal(t, 2, strings.Count(text, screenTop))
	frame := w.frame([]topRow{{Topic: client.Topic{Name: clitest.Evil}}}, errors.New(clitest.Evil), 10) + w.frame([]topRow{{Topic: client.Topic{Name: clitest.Evil}}}, nil, 10)
	for _, ours := range []string{screenTop, lineRest, screenRest} {
		frame = strings.ReplaceAll(frame, ours, "")
	}
	clitest.RequireHarmless(t, frame, 5)

	ctx, stop := context.WithCancel(t.Context())
	stop()
	screen.Reset()
	require.NoError(t, w.run(ctx, time.Hour, 0))
	require.Equal(t, screenOwn+screenBack, screen.String())

	frame = w.frame(make([]topRow, 100), nil, 10)
	require.Equal(t, 9, strings.Count(frame, "\n"), "it fits on the screen")
}
