package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/clitest"
)

func TestTheSameComplaintIsMadeOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out clitest.LogBuffer
		log := slog.New(newOnceInAWhile(slog.NewTextHandler(&out, nil)))
		lines := func() int { return strings.Count(out.String(), "\n") }
		for i := range 50 {
			log.With("node", "n1").Warn("refused", "from", i)
			log.Error("no heartbeat", "peer", "n2")
			log.Error("no heartbeat", "peer", "n3")
		}
		require.Equal(t, 3, lines(), "at once, and each peer has its own")
		time.Sleep(repeatAfter)
		synctest.Wait()
		require.Equal(t, 6, lines())
		require.Contains(t, out.String(), "msg=refused node=n1 from=49 repeated=49")
		last := out.String()[strings.LastIndexByte(strings.TrimSpace(out.String()), '\n')+1:]
		require.True(t, strings.HasPrefix(last, "time="+time.Now().Format("2006-01-02T15:04:05")), "the time of the line, not of the event: %s", last)
		time.Sleep(10 * repeatAfter)
		synctest.Wait()
		require.Equal(t, 6, lines(), "nothing more was kept back")
		log.Warn("refused", "from", 51)
		require.Equal(t, 7, lines(), "the next is made at once")
		for i := range 1000 {
			log.Warn("refused", "topic", i)
			log.Info("purged", "topic", i)
		}
		require.Less(t, lines(), 7+maxComplaints+2+1000)
		require.Equal(t, 1000, strings.Count(out.String(), "msg=purged"), "what was asked for has its line")
		time.Sleep(10 * repeatAfter)
	})
}
