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
)

func TestCommandsCallNodesBehindTLS(t *testing.T) {
	s := newShell(t)
	server := httptest.NewUnstartedServer(api.New(api.Options{Queue: s.queue, Operator: s.operator}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Setenv(addrEnv, server.URL)

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

	s.ok("add", "-t", "mail", "-i", "a", "hello", "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
	t.Setenv(caEnv, cert)
	t.Setenv(certEnv, cert)
	t.Setenv(keyEnv, key)
	require.Contains(t, s.ok("get", "a"), "hello")
	s.ok("ready")

	for _, c := range []struct {
		flags []string
		code  int
		says  string
	}{
		{[]string{"--tls-ca", filepath.Join(dir, "none")}, exitUsage, "--tls-ca: open"},
		{[]string{"--tls-ca", empty}, exitUsage, "has no certificate in PEM"},
		{[]string{"--tls-key", empty}, exitUsage, "--tls-cert, --tls-key: tls:"},
	} {
		code, _, errs := s.run(append([]string{"get", "a"}, c.flags...)...)
		require.Equal(t, c.code, code, errs)
		require.Contains(t, errs, c.says)
	}
	t.Setenv(keyEnv, "")
	_, _, errs := s.run("get", "a")
	require.Contains(t, errs, "--tls-cert and --tls-key need each other")
	t.Setenv(certEnv, "")
	t.Setenv(caEnv, "")
	code, _, errs := s.run("get", "a", "--patience", "0s")
	require.Equal(t, exitUnreachable, code, errs)
	require.Contains(t, errs, "--tls-ca names a file")
	code, _, errs = s.run("ready")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "certificate signed by unknown authority")
}
