package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/certs"
)

func TestCertMakesShowsAndRenews(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	sign := []string{"--ca", at("ca.crt"), "--ca-key", at("ca.key")}
	s.ok("cert", "ca", "--cluster", "orders", "--dir", dir)
	require.Contains(t, s.ok(append([]string{"cert", "node", "n1", "--dir", dir}, sign...)...), at("node-n1.key"))
	s.ok(append([]string{"cert", "server", "q", "--host", "q.example", "--host", "::1", "--dir", dir}, sign...)...)
	s.ok(append([]string{"cert", "client", "billing", "--dir", dir}, sign...)...)
	s.ok(append([]string{"cert", "token", "shop", "--dir", dir}, sign...)...)
	require.Contains(t, s.ok("cert", "show", at("token-shop.crt")), "tarry://orders/token/shop")
	require.Contains(t, s.ok("cert", "show", at("node-n1.crt"), at("ca.crt")), "tarry://orders/node/n1")
	require.Contains(t, s.ok("cert", "show", at("server-q.crt")), "q.example, ::1")

	key, err := os.ReadFile(at("node-n1.key"))
	require.NoError(t, err)
	before, err := certs.ReadCertificates(at("node-n1.crt"))
	require.NoError(t, err)
	s.ok(append([]string{"cert", "renew", at("node-n1.crt"), "--valid", "800d"}, sign...)...)
	after, err := certs.Open(certs.Files{Cert: at("node-n1.crt"), Key: at("node-n1.key"), CA: at("ca.crt")}, nil)
	require.NoError(t, err)
	require.True(t, after.Current().Certificate.Leaf.NotAfter.After(before[0].NotAfter))

	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{append([]string{"cert", "node", "n1", "--dir", dir}, sign...), exitFailed, "nothing is overwritten"},
		{[]string{"cert", "ca", "--dir", dir}, exitFailed, "nothing is overwritten"},
		{[]string{"cert", "ca", "--dir", dir, "--cluster", "A/b"}, exitUsage, "a-z"},
		{append([]string{"cert", "node", "a/b"}, sign...), exitUsage, "file's name"},
		{append([]string{"cert", "token", "Shop"}, sign...), exitUsage, "a-z"},
		{append([]string{"cert", "server", "q2"}, sign...), exitUsage, "--host"},
		{append([]string{"cert", "node"}, sign...), exitUsage, "ID"},
		{[]string{"cert", "node", "n2", "--ca", at("none")}, exitFailed, "tarry cert ca"},
		{[]string{"cert", "node", "n2", "--ca", at("node-n1.crt"), "--ca-key", at("node-n1.key")}, exitFailed, "not a certificate authority"},
		{[]string{"cert", "node", "n2", "--ca", at("ca.crt"), "--ca-key", at("node-n1.key")}, exitFailed, "not that of the certificate"},
		{[]string{"cert", "show", at("ca.key")}, exitFailed, "PRIVATE KEY"},
	} {
		code, _, errs := s.run(c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, errs)
		require.Contains(t, errs, c.says)
	}
	now, err := os.ReadFile(at("node-n1.key"))
	require.NoError(t, err)
	require.Equal(t, key, now)
}
