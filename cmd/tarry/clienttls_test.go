package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/cmd/tarry/internal/cli"
)

func TestCommandsCallNodesBehindTLS(t *testing.T) {
	s := newShell(t)
	server := httptest.NewUnstartedServer(api.New(api.Options{Queue: s.Queue, Operator: s.Operator}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Setenv(cli.AddrEnv, server.URL)

	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	pair := server.TLS.Certificates[0] // it signs itself
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	cert, key := file("cert.pem", "CERTIFICATE", pair.Certificate[0]), file("key.pem", "PRIVATE KEY", der)
	empty := file("empty.pem", "NOTHING", nil)

	s.OK("add", "-t", "mail", "-i", "a", "hello", "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
	t.Setenv(cli.CAEnv, cert)
	t.Setenv(cli.CertEnv, cert)
	t.Setenv(cli.KeyEnv, key)
	require.Contains(t, s.OK("get", "a"), "hello")
	s.OK("ready")

	for _, c := range []struct {
		flags []string
		code  int
		says  string
	}{
		{[]string{"--tls-ca", filepath.Join(dir, "none")}, cli.ExitUsage, "--tls-ca: open"},
		{[]string{"--tls-ca", empty}, cli.ExitUsage, "has no certificate in PEM"},
		{[]string{"--tls-key", empty}, cli.ExitUsage, "--tls-cert, --tls-key: tls:"},
	} {
		code, _, errs := s.Run(append([]string{"get", "a"}, c.flags...)...)
		require.Equal(t, c.code, code, errs)
		require.Contains(t, errs, c.says)
	}
	t.Setenv(cli.KeyEnv, "")
	_, _, errs := s.Run("get", "a")
	require.Contains(t, errs, "--tls-cert and --tls-key need each other")
	t.Setenv(cli.CertEnv, "")
	t.Setenv(cli.CAEnv, "")
	code, _, errs := s.Run("get", "a", "--patience", "0s")
	require.Equal(t, cli.ExitUnreachable, code, errs)
	require.Contains(t, errs, "--tls-ca names a file")
	code, _, errs = s.Run("ready")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "certificate signed by unknown authority")
}
