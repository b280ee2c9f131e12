package main

import (
	"crypto/rand"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/auth"
)

// validToken is the text of a token that no cluster knows.
func validToken(t *testing.T, id string) string {
	secret, err := auth.Generate(rand.Reader, id)
	require.NoError(t, err)
	return secret.Text()
}

// Old clients, which cannot send a token, have that of the address that they call.
func TestClientsOfAListenerHaveItsToken(t *testing.T) {
	dir, tubes := t.TempDir(), freeAddr(t)
	socket, file, other := filepath.Join(dir, "s"), filepath.Join(dir, "shop.token"), filepath.Join(dir, "other.token")
	data := filepath.Join(dir, "data")
	// The node starts with tokens that its cluster does not know yet.
	require.NoError(t, os.WriteFile(file, []byte(validToken(t, "early")+"\n"), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(validToken(t, "other")), 0o600))
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

func TestListenersWithATokenThatCannotBe(t *testing.T) {
	for text, says := range map[string]string{
		"127.0.0.1:11301":                                  "it must be addr=host:port,token-file=FILE",
		"addr=127.0.0.1:11301":                             "has no token-file",
		"token-file=a":                                     "it must be",
		"addr=,token-file=a":                               "it must be",
		"addr=127.0.0.1:1,token-file=a,token-file=b":       "it must be",
		"addr=127.0.0.1:1,token=tarry_a_b_c":               "it must be",
		"addr=127.0.0.1:1,token-file=a,addr=127.0.0.1:2":   "127.0.0.1:2 has no token-file",
		"addr=11301,token-file=a":                          "--beanstalk-listen",
		"addr=0.0.0.0:11301,token-file=a":                  "--insecure",
		"addr=unix:,token-file=a":                          "0 bytes",
		"addr=127.0.0.1:1,token-file=a addr=1,token-file=": "it must be",
	} {
		_, err := parseServerConfig([]string{"--beanstalk-listen", text}, noEnv)
		require.ErrorContains(t, err, says, text)
	}
	file := filepath.Join(t.TempDir(), "listeners.yaml")
	require.NoError(t, os.WriteFile(file, []byte("beanstalk-addr: 'off'\nbeanstalk-listen:\n- addr=127.0.0.1:1,token-file=a\n- addr=unix:/b,token-file=c\n"), 0o600))
	cfg, err := parseServerConfig([]string{"--config", file}, noEnv)
	require.NoError(t, err)
	require.Equal(t, boundListeners{{"127.0.0.1:1", "a"}, {"unix:/b", "c"}}, cfg.BeanstalkListen)
	_, err = checkBeanstalk(cfg, nil)
	require.ErrorContains(t, err, "the token of the clients of 127.0.0.1:1 (--beanstalk-listen)")

	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	cfg.BeanstalkListen = boundListeners{{freeAddr(t), token}}
	_, err = checkBeanstalk(cfg, nil)
	require.ErrorContains(t, err, "it is not a token")
	require.NotContains(t, err.Error(), "secret")
	require.NoError(t, os.WriteFile(token, []byte(validToken(t, "a")), 0o600))
	cfg.BeanstalkListen = append(cfg.BeanstalkListen, cfg.BeanstalkListen[0])
	_, err = checkBeanstalk(cfg, nil)
	require.ErrorContains(t, err, "in use")
}
