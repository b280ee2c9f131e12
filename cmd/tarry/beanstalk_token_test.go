package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/cmd/tarry/internal/clitest"
)

// callNode makes a call with a token, and returns the token of the reply.
func callNode(t *testing.T, method, url, token, body string) string {
	t.Helper()
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.Less(t, a.StatusCode, 300, string(text))
	var reply struct{ Token string }
	require.NoError(t, json.Unmarshal(text, &reply))
	return reply.Token
}

// Under enforce clients of the beanstalkd port do and see what their token allows, and without
// one what everybody may.
func TestBeanstalkdClientsHaveTokens(t *testing.T) {
	dir, tubes := t.TempDir(), clitest.FreeAddr(t)
	addr, _ := runNode(t, "--beanstalk-addr", tubes, "--data-dir", dir)
	require.Eventually(t, func() bool { return status(addr, "/readyz") == http.StatusOK }, time.Minute, 10*time.Millisecond)
	c, err := net.Dial("tcp", tubes)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "USING secret", say(t, c, "use secret\r\n"))
	require.Regexp(t, "^INSERTED 1", say(t, c, "put 0 60 60 1\r\nx\r\n"))
	proof, err := os.ReadFile(filepath.Join(dir, api.BootstrapFile))
	require.NoError(t, err)
	url := "http://" + addr
	root := callNode(t, http.MethodPost, url+"/v1/auth/bootstrap", "", `{"secret":"`+strings.TrimSpace(string(proof))+`"}`)
	worker := callNode(t, http.MethodPut, url+"/v1/tokens/worker", root, `{"rules":[{"topics":["mail"],"verbs":["add","consume"]}]}`)
	require.Regexp(t, "^FOUND 1", say(t, c, "peek-delayed\r\n"))
	callNode(t, http.MethodPut, url+"/v1/auth", root, `{"mode":"enforce","anonymous":[{"topics":["public"],"verbs":["add","read","consume"]}]}`)

	type try struct{ says, reply string }
	for _, client := range [][]try{{
		{"use secret\r\n", "USING secret"},
		{"peek 1\r\n", "NOT_FOUND"},
		{"peek-delayed\r\n", "INTERNAL_ERROR"},
		{"peek-ready\r\n", "INTERNAL_ERROR"},
		{"stats-job 1\r\n", "NOT_FOUND"},
		{"stats-tube secret\r\n", "INTERNAL_ERROR"},
		{"put 0 0 60 1\r\nx\r\n", "INTERNAL_ERROR"},
		{"delete 1\r\n", "NOT_FOUND"},
		{"kick-job 1\r\n", "INTERNAL_ERROR"},
		{"kick 1\r\n", "INTERNAL_ERROR"},
		{"pause-tube secret 1\r\n", "INTERNAL_ERROR"},
		{"watch secret\r\n", "WATCHING 2"},
		{"reserve-with-timeout 0\r\n", "INTERNAL_ERROR"},
		{"watch public\r\n", "WATCHING 3"},
		{"ignore secret\r\n", "WATCHING 2"},
		{"use public\r\n", "USING public"},
		{"put 0 0 60 1\r\nx\r\n", "INSERTED 2"},
		{"reserve-with-timeout 0\r\n", "RESERVED 2 1"},
	}, {
		{"auth " + worker + "\r\n", "AUTHORIZED"},
		{"use mail\r\n", "USING mail"},
		{"put 0 0 60 1\r\nx\r\n", "INSERTED 3"},
		{"watch mail\r\n", "WATCHING 2"},
		{"reserve\r\n", "RESERVED 3 1"},
		{"peek 3\r\n", "INTERNAL_ERROR"},
		{"delete 3\r\n", "DELETED"},
		{"use secret\r\n", "USING secret"},
		{"put 0 0 60 1\r\nx\r\n", "INTERNAL_ERROR"},
	}} {
		k, err := net.Dial("tcp", tubes)
		require.NoError(t, err)
		defer k.Close()
		for _, command := range client {
			reply := say(t, k, command.says)
			if !strings.HasPrefix(reply, command.reply) {
				t.Errorf("%q: %s instead of %s", command.says, reply, command.reply)
			}
		}
	}
}
