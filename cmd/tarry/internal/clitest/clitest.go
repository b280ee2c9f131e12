// Package clitest runs command lines in tests.
package clitest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/auth"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/freeport"
)

// ValidToken is the text of a token that no cluster knows.
func ValidToken(t *testing.T, id string) string {
	secret, err := auth.Generate(rand.Reader, id)
	require.NoError(t, err)
	return secret.Text()
}

// Shell runs command lines against a queue in memory.
type Shell struct {
	T        *testing.T
	Root     func() *cobra.Command // the tree of commands
	Queue    *apitest.Queue
	Operator *apitest.Operator
	Stdin    string
}

// NewShellOf returns a shell with the commands of a tree.
func NewShellOf(t *testing.T, root func() *cobra.Command) *Shell {
	s := &Shell{T: t, Root: root, Queue: apitest.New(t), Operator: &apitest.Operator{}}
	server := httptest.NewServer(api.New(api.Options{Queue: s.Queue, Operator: s.Operator, About: apitest.About()}))
	t.Cleanup(server.Close)
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	return s
}

// Run gives the exit code and what was printed.
func (s *Shell) Run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.RunTree(context.Background(), s.Root(), args, strings.NewReader(s.Stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// OK runs a command that must succeed.
func (s *Shell) OK(args ...string) string {
	s.T.Helper()
	code, out, errs := s.Run(args...)
	require.Equal(s.T, cli.ExitOK, code, "%v: %s", args, errs)
	return out
}

// typed is a terminal at which somebody types.
type typed struct{ io.Reader }

func (typed) IsTerminal() bool { return true }

// Answer runs a command at a terminal and answers its question.
func (s *Shell) Answer(text string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.RunTree(context.Background(), s.Root(), args, typed{strings.NewReader(text)}, &out, &errs)
	return code, out.String(), errs.String()
}

// JSON runs a command that may fail.
func (s *Shell) JSON(args ...string) string {
	_, out, _ := s.Run(append(args, "--json")...)
	return out
}

// Evil has what steers a terminal, breaks lines and turns the direction of writing.
const Evil = "\x1b[31m\x07\r\n\t\u0085\u009b2J\u202e\u2066\u061c\u2028\u200f\x7fend"

func RequireHarmless(t *testing.T, text string, lines int) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	for _, r := range text {
		require.False(t, r != '\n' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control), "%q in %q", r, text)
	}
	require.LessOrEqual(t, strings.Count(text, "\n"), lines, "%q", text)
}

// Hold adds jobs to a topic and reserves them.
func (s *Shell) Hold(topic, consumer string, ids ...string) {
	s.T.Helper()
	for _, id := range ids {
		s.OK("add", "-t", topic, "-i", id, "--header", "n="+id, "x")
		s.OK("reserve", "-t", topic, "--consumer", consumer)
	}
}

// LogBuffer is written by the server and read by the test.
type LogBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// FreeAddr is an address that nobody listens at.
func FreeAddr(t *testing.T) string {
	port, err := freeport.Take()
	require.NoError(t, err)
	return fmt.Sprint("127.0.0.1:", port)
}

// Bury makes a dead job of a topic that has no ready one.
func (s *Shell) Bury(topic, id, reason string) {
	s.T.Helper()
	s.OK("add", "--topic", topic, "--id", id, "--header", "tenant="+id[:1], "body of "+id)
	s.OK("reserve", "--topic", topic)
	s.OK("bury", id, "--reason", reason)
}

// NotifySocket is the end of a supervisor.
func NotifySocket(t *testing.T) (path string, next func() string) {
	path = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return path, func() string {
		buf := make([]byte, 4096)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := conn.Read(buf)
		require.NoError(t, err)
		return string(buf[:n])
	}
}
