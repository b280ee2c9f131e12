package events

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// A message that changes in the source would silently be no event any more.
func TestEveryMessageIsLoggedSomewhere(t *testing.T) {
	var source strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || filepath.Base(filepath.Dir(path)) == "events" {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	}))
	for message := range kinds {
		logged := regexp.MustCompile(`(?:Info|Warn|Error)\("` + regexp.QuoteMeta(message) + `[";]`)
		require.True(t, logged.MatchString(source.String()), "nothing logs %q", message)
	}
}

func TestEventsAreTheLinesOfTheLog(t *testing.T) {
	var out bytes.Buffer
	l := NewLog()
	log := l.Logger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))).With("node", "n1")
	log.Info("member is alive", "member", "n2", "address", "n2:7301")
	log.Warn("a stream failed", "error", errors.New("broken"))
	log.With("part", "raft").Warn("clocks are off", "because", strings.Repeat("é", 400), "bad", "\xff")

	got := l.After(0)
	require.Len(t, got, 2)
	require.Equal(t, job.ClusterEvent{
		Number: 1, At: got[0].At, Kind: "member", Level: "info", Text: "member is alive",
		Details: []job.EventDetail{{Name: "member", Value: "n2"}, {Name: "address", Value: "n2:7301"}},
	}, got[0])
	require.False(t, got[0].At.IsZero())
	require.Equal(t, "clock", got[1].Kind)
	require.Equal(t, strings.Repeat("é", 250)+"...", got[1].Details[0].Value)
	require.Equal(t, "?", got[1].Details[1].Value)
	require.NotContains(t, out.String(), "member is alive", "the level of the log still counts")
	require.Contains(t, out.String(), "a stream failed")
	require.Contains(t, out.String(), "node=n1 part=raft")
}

func TestALogKeepsTheLastThousand(t *testing.T) {
	l := NewLog()
	require.Empty(t, l.After(0))
	log := l.Logger(slog.New(slog.DiscardHandler))
	for i := range 2500 {
		log.Info("leader changed", "leader", fmt.Sprint(i))
	}
	all := l.After(0)
	require.Len(t, all, capacity)
	for i, e := range all {
		require.EqualValues(t, 1501+i, e.Number)
		require.Equal(t, fmt.Sprint(1500+i), e.Details[0].Value)
	}
	require.Equal(t, all[990:], l.After(2490))
	require.Empty(t, l.After(2500))
	require.Equal(t, all, l.After(2501), "a number of an earlier process")
}

func TestOneKindDoesNotPushOutTheOthers(t *testing.T) {
	l := NewLog()
	log := l.Logger(slog.New(slog.DiscardHandler))
	log.Info("node joined", "member", "n2")
	log.Info("leader changed", "leader", "n1")
	for i := range 2500 {
		log.Warn("cannot fetch the newer gossip keys of a member; trying again", "try", i)
	}
	log.Info("leader changed", "leader", "n2")
	all := l.After(0)
	require.Len(t, all, capacity)
	require.Equal(t, []string{member, leader, gossip}, []string{all[0].Kind, all[1].Kind, all[2].Kind})
	require.Equal(t, []uint64{1, 2, 1506, 2502, 2503}, []uint64{all[0].Number, all[1].Number, all[2].Number, all[998].Number, all[999].Number})
	require.Equal(t, all[1:], l.After(1))
	require.Equal(t, all[2:], l.After(700), "a number that is not kept any more")
	require.Equal(t, all[999:], l.After(2502))
}
