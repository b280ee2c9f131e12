package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// A node with TLS on both ports of clients serves those with a certificate, and tells the
// others what it wants.
func TestClientsSpeakTLSWithANode(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	a := certstest.New(t, "orders")
	server, client := a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1"), a.Issue(certs.RoleClient, "billing", time.Hour)
	addr, tubes, data := clitest.FreeAddr(t), clitest.FreeAddr(t), t.TempDir()
	args := []string{
		"--data-dir", data, "--http-addr", addr, "--cluster-addr", clitest.FreeAddr(t), "--gossip-addr", clitest.FreeAddr(t), "--beanstalk-addr", tubes, "--disk-low-water", "0",
		"--http-tls-mode", "require", "--http-tls-cert", server.Cert, "--http-tls-key", server.Key, "--http-client-ca", a.CA,
		"--beanstalk-tls-mode", "require", "--beanstalk-tls-cert", server.Cert, "--beanstalk-tls-key", server.Key, "--beanstalk-client-ca", a.CA,
	}
	var log, out clitest.LogBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()

	own, err := tls.LoadX509KeyPair(client.Cert, client.Key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	caller := http.Client{Transport: transport, Timeout: 10 * time.Second}
	get := func(c http.Client, url string) (int, string, error) {
		resp, err := c.Get(url)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.ProtoMajor*1000 + resp.StatusCode, string(body), err
	}
	require.Eventually(t, func() bool {
		code, _, err := get(caller, "https://"+addr+"/readyz")
		return err == nil && code == 1200 // HTTP/1: there are no streams to bound
	}, 30*time.Second, 20*time.Millisecond, "%v", &log)

	code, body, err := get(http.Client{}, "http://"+addr+"/v1/topics")
	require.NoError(t, err)
	require.Equal(t, 1400, code)
	require.Contains(t, body, "https://")
	nobody := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer nobody.CloseIdleConnections()
	_, _, err = get(http.Client{Transport: nobody}, "https://"+addr+"/v1/topics")
	require.ErrorContains(t, err, "certificate required")
	_, body, err = get(caller, "https://"+addr+"/metrics")
	require.NoError(t, err)
	require.Contains(t, body, `tarry_certificate_expiry_seconds{port="beanstalk"}`)
	code, body, err = get(caller, "https://"+addr+"/ui/")
	require.NoError(t, err)
	require.Equal(t, 1200, code, body)

	ask := func(c net.Conn, err error, command string) string {
		require.NoError(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprint(c, command)
		got, _ := io.ReadAll(c)
		return string(got)
	}
	plain, err := net.Dial("tcp", tubes)
	require.Equal(t, "BAD_FORMAT\r\n", ask(plain, err, "stats\r\n"))
	// The reserve waits, is watched, and ends with its time; the connection goes on.
	secured, err := tls.Dial("tcp", tubes, config)
	require.Equal(t, "TIMED_OUT\r\nINSERTED 1\r\nRESERVED 1 1\r\nx\r\n", ask(secured, err, "reserve-with-timeout 1\r\nput 0 0 60 1\r\nx\r\nreserve\r\nquit\r\n"))

	// A certificate that names a token acts with it, on both ports.
	admin := a.Issue(certs.RoleToken, "root", time.Hour)
	s := newShell(t)
	t.Setenv(cli.TokenFileEnv, "")
	secure := func(f certs.Files, args ...string) []string {
		return append(args, "--addr", "https://"+addr, "--tls-ca", a.CA, "--tls-cert", f.Cert, "--tls-key", f.Key)
	}
	s.OK(secure(client, "auth", "bootstrap", "--data-dir", data, "-o", filepath.Join(data, "root.token"))...)
	require.Contains(t, s.OK(secure(admin, "auth", "check")...), "token root")
	s.OK(secure(admin, "auth", "mode", "enforce")...)
	code, _, errs := s.Run(secure(client, "list", "default")...)
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "token")
	s.OK(secure(admin, "list", "default")...)
	code, _, errs = s.Run(secure(admin, "list", "default", "--token-file", filepath.Join(data, "root.token"))...)
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "send one of them")
	named, err := tls.LoadX509KeyPair(admin.Cert, admin.Key)
	require.NoError(t, err)
	secured, err = tls.Dial("tcp", tubes, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{named}})
	require.Equal(t, "USING x\r\nINSERTED 2\r\n", ask(secured, err, "use x\r\nput 0 0 60 1\r\nx\r\nquit\r\n"))
	secured, err = tls.Dial("tcp", tubes, config)
	require.Equal(t, "INTERNAL_ERROR\r\n", ask(secured, err, "put 0 0 60 1\r\nx\r\nquit\r\n"))

	stop()
	require.Equal(t, cli.ExitOK, <-ended, log.String())
	require.NotContains(t, strings.ReplaceAll(log.String(), "the HTTP server complains", ""), "level=ERROR")
}

func TestTLSNeedsItsFiles(t *testing.T) {
	s := newShell(t)
	for _, port := range []string{"http", "beanstalk"} {
		code, _, errs := s.Run("server", "--"+port+"-tls-mode", "require")
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, "--"+port+"-tls-cert")
		code, _, errs = s.Run("server", "--"+port+"-tls-mode", "yes")
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, "optional")
	}
	code, _, errs := s.Run("server", "--cluster-tls-mode", "accept")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--cluster-tls-ca")
}
