package main

import (
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

// Old clients, which cannot send a token, have that of the address that they call.
func TestClientsOfAListenerHaveItsToken(t *testing.T) {
	dir, tubes := t.TempDir(), clitest.FreeAddr(t)
	socket, file, other := filepath.Join(dir, "s"), filepath.Join(dir, "shop.token"), filepath.Join(dir, "other.token")
	data := filepath.Join(dir, "data")
	// The node starts with tokens that its cluster does not know yet.
	require.NoError(t, os.WriteFile(file, []byte(clitest.ValidToken(t, "early")+"\n"), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(clitest.ValidToken(t, "other")), 0o600))
	addr, _ := runNode(t, "--beanstalk-addr", "off", "--data-dir", data,
		"--beanstalk-listen", "addr="+tubes+",token-file="+file, "--beanstalk-listen", "addr=unix:"+socket+",token-file="+other)
	require.Eventually(t, func() bool { return status(addr, "/readyz") == http.StatusOK }, time.Minute, 10*time.Millisecond)
	proof, err := os.ReadFile(filepath.Join(data, api.BootstrapFile))
	require.NoError(t, err)
	url := "http://" + addr
	root := callNode(t, http.MethodPost, url+"/v1/auth/bootstrap", "", `{"secret":"`+strings.TrimSpace(string(proof))+`"}`)
	shop := callNode(t, http.MethodPut, url+"/v1/tokens/shop", root, `{"rules":[{"topics":["mail"],"verbs":["add"]}]}`)
	callNode(t, http.MethodPut, url+"/v1/auth", root, `{"mode":"enforce"}`)
	require.NoError(t, os.WriteFile(file, []byte(shop+"\n"), 0o600)) // read again, as it has changed

	c, err := net.Dial("tcp", tubes)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "USING mail", say(t, c, "use mail\r\n"))
	require.Equal(t, "INSERTED 1", say(t, c, "put 0 0 60 1\r\nx\r\n"))
	require.Equal(t, "INTERNAL_ERROR", say(t, c, "reserve\r\n"))
	stranger, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer stranger.Close()
	require.Equal(t, "INTERNAL_ERROR", say(t, stranger, "use mail\r\n"))
	require.Equal(t, "AUTHORIZED", say(t, stranger, "auth "+shop+"\r\n"))
	require.Equal(t, "USING mail", say(t, stranger, "use mail\r\n"))

	require.NoError(t, os.Remove(file))
	late, err := net.Dial("tcp", tubes)
	require.NoError(t, err)
	defer late.Close()
	require.Equal(t, "INTERNAL_ERROR", say(t, late, "use mail\r\n"))
}
