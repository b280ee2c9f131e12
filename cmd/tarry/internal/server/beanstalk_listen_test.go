package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/clitest"
)

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
	_, err = TakeBeanstalk(cfg, nil)
	require.ErrorContains(t, err, "the token of the clients of 127.0.0.1:1 (--beanstalk-listen)")

	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	cfg.BeanstalkListen = boundListeners{{clitest.FreeAddr(t), token}}
	_, err = TakeBeanstalk(cfg, nil)
	require.ErrorContains(t, err, "it is not a token")
	require.NotContains(t, err.Error(), "secret")
	require.NoError(t, os.WriteFile(token, []byte(clitest.ValidToken(t, "a")), 0o600))
	cfg.BeanstalkListen = append(cfg.BeanstalkListen, cfg.BeanstalkListen[0])
	_, err = TakeBeanstalk(cfg, nil)
	require.ErrorContains(t, err, "in use")
}

func TestASocketFileThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	_, err := TakeBeanstalk(&Config{BeanstalkAddr: "unix:" + file}, nil)
	require.ErrorContains(t, err, "is not a socket")
	require.FileExists(t, file)
	_, err = TakeBeanstalk(&Config{BeanstalkAddr: "unix:" + filepath.Join(dir, "none", "tubes")}, nil)
	require.ErrorContains(t, err, "--beanstalk-addr")
	for _, path := range []string{"", "/" + strings.Repeat("x", maxSocketPath)} {
		_, err := parseServerConfig([]string{"--beanstalk-addr", "unix:" + path}, noEnv)
		require.ErrorContains(t, err, fmt.Sprintf("%d bytes", len(path)))
	}
	_, err = parseServerConfig([]string{"--http-addr", "unix:/run/tarry"}, noEnv)
	require.ErrorContains(t, err, "--http-addr", "only beanstalkd's clients know it")
}
