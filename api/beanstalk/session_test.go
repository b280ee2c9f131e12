package beanstalk_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/beanstalk"
	"tarry/job/jobpb"
)

// past is a scripted queue in which every job was deleted and is retained.
type past struct{ *scripted }

func (past) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	return &jobpb.ReadResult{Job: &jobpb.Job{Seq: r.GetJobSeq(), State: jobpb.State_STATE_DELETED, EndedMs: 1, Body: []byte("x")}}, nil
}

func TestARetainedJobIsNotFound(t *testing.T) {
	q := past{&scripted{}}
	addr := serve(t, beanstalk.Options{Queue: q, Logger: slog.New(slog.DiscardHandler)})
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "peek 7\r\nstats-job 7\r\nquit\r\n")
	require.NoError(t, err)
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "NOT_FOUND\r\nNOT_FOUND\r\n", string(said))
}

// A page in a browser can make the browser post any body to any port of the machine.
func TestAnHTTPRequestIsNotExecutedAsCommands(t *testing.T) {
	q := &scripted{}
	addr := serve(t, beanstalk.Options{Queue: q, Logger: slog.New(slog.DiscardHandler)})
	body := "\r\nput 0 0 60 4\r\nevil\r\nstats\r\n"
	for name, request := range map[string]string{
		"a form":              "POST / HTTP/1.1\r\nHost: localhost:11300\r\nContent-Type: text/plain\r\n" + body,
		"a line that is long": "POST /" + strings.Repeat("x", 1000) + " HTTP/1.1\r\n" + body,
		"a line in pieces":    "G|E|T| |/ HTTP/1.1\r\n" + body,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			for piece := range strings.SplitSeq(request, "|") {
				_, err = io.WriteString(c, piece)
				require.NoError(t, err)
			}
			said, _ := io.ReadAll(c) // the end, or a reset because not all was read
			require.Empty(t, string(said))
			q.mu.Lock()
			defer q.mu.Unlock()
			require.Empty(t, q.calls)
		})
	}
}

// FuzzSession sends any bytes to a server and disconnects. The server sends complete replies,
// and the session ends.
func FuzzSession(f *testing.F) {
	for _, s := range []string{
		"put 0 0 1 1\r\nx\r\nput 0 0 1 99999\r\n", "use a\r\nput 1 2 3 4\r\nabcdXYput 0 0 1 0\r\n\r\n",
		"watch job\r\nignore default\r\nreserve-with-timeout 0\r\ntouch 7\r\nrelease 7 0 0\r\ndelete 7\r\n",
		"auth x\r\nauth tarry_a_b_c\r\nstats\r\n", "stats\r\nstats-job 1\r\nstats-tube default\r\nlist-tubes\r\nlist-tubes-watched\r\npause-tube a 1\r\n",
		"kick 18446744073709551615\r\npeek-ready\r\npeek 0\r\nquit\r\nput", strings.Repeat("x", 300) + "\r\nlist-tube-used\r\n",
	} {
		f.Add([]byte(s))
	}
	q := &scripted{}
	addr := filepath.Join(f.TempDir(), "s") // a port for every session would use up the ports
	serveOn(f, "unix", addr, beanstalk.Options{Queue: q, Logger: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, sent []byte) {
		text := string(sent)
		if strings.Contains(strings.ReplaceAll(text, "reserve-with-timeout 0\r\n", ""), "reserve") {
			t.Skip("a wait would only take time")
		}
		c, err := net.Dial("unix", addr)
		require.NoError(t, err)
		defer c.Close()
		// After a quit the server reads no more: then both may fail.
		quits := strings.Contains(text, "quit")
		if _, err := c.Write(sent); !quits {
			require.NoError(t, err)
		}
		if err := c.(*net.UnixConn).CloseWrite(); !quits {
			require.NoError(t, err)
		}
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		got, err := io.ReadAll(c)
		if !quits {
			require.NoError(t, err, "the session must end")
			require.True(t, len(got) == 0 || strings.HasSuffix(string(got), "\r\n"), "%q ends within a reply", got)
		}
	})
}

func TestAPauseOfATubeIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		code jobpb.Code
		done string
	}{"done": {done: "paused=true"}, "refused": {code: jobpb.Code_INVALID, done: "paused=false"}} {
		t.Run(name, func(t *testing.T) {
			q := &scripted{code: c.code}
			var log strings.Builder
			addr := serve(t, beanstalk.Options{Queue: q, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			talk(t, addr, "use mail\r\npause-tube mail 60\r\n") // to the end of the connection
			require.Contains(t, log.String(), `msg="management call" call="pause-tube mail 60" from=127.0.0.1:`)
			require.Contains(t, log.String(), c.done)
		})
	}
}
