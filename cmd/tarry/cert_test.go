package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/certs"
)

func TestCertMakesShowsAndRenews(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	sign := []string{"--ca", at("ca.crt"), "--ca-key", at("ca.key")}
	s.OK("cert", "ca", "--cluster", "orders", "--dir", dir)
	require.Contains(t, s.OK(append([]string{"cert", "node", "n1", "--dir", dir}, sign...)...), at("node-n1.key"))
	s.OK(append([]string{"cert", "server", "q", "--host", "q.example", "--host", "::1", "--dir", dir}, sign...)...)
	s.OK(append([]string{"cert", "client", "billing", "--dir", dir}, sign...)...)
	s.OK(append([]string{"cert", "token", "shop", "--dir", dir}, sign...)...)
	require.Contains(t, s.OK("cert", "show", at("token-shop.crt")), "tarry://orders/token/shop")
	require.Contains(t, s.OK("cert", "show", at("node-n1.crt"), at("ca.crt")), "tarry://orders/node/n1")
	require.Contains(t, s.OK("cert", "show", at("server-q.crt")), "q.example, ::1")

	key, err := os.ReadFile(at("node-n1.key"))
	require.NoError(t, err)
	before, err := certs.ReadCertificates(at("node-n1.crt"))
	require.NoError(t, err)
	s.OK(append([]string{"cert", "renew", at("node-n1.crt"), "--valid", "800d"}, sign...)...)
	after, err := certs.Open(certs.Files{Cert: at("node-n1.crt"), Key: at("node-n1.key"), CA: at("ca.crt")}, nil)
	require.NoError(t, err)
	require.True(t, after.Current().Certificate.Leaf.NotAfter.After(before[0].NotAfter))

	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{append([]string{"cert", "node", "n1", "--dir", dir}, sign...), cli.ExitFailed, "nothing is overwritten"},
		{[]string{"cert", "ca", "--dir", dir}, cli.ExitFailed, "nothing is overwritten"},
		{[]string{"cert", "ca", "--dir", dir, "--cluster", "A/b"}, cli.ExitUsage, "a-z"},
		{append([]string{"cert", "node", "a/b"}, sign...), cli.ExitUsage, "file's name"},
		{append([]string{"cert", "token", "Shop"}, sign...), cli.ExitUsage, "a-z"},
		{append([]string{"cert", "server", "q2"}, sign...), cli.ExitUsage, "--host"},
		{append([]string{"cert", "node"}, sign...), cli.ExitUsage, "ID"},
		{[]string{"cert", "node", "n2", "--ca", at("none")}, cli.ExitFailed, "tarry cert ca"},
		{[]string{"cert", "node", "n2", "--ca", at("node-n1.crt"), "--ca-key", at("node-n1.key")}, cli.ExitFailed, "not a certificate authority"},
		{[]string{"cert", "node", "n2", "--ca", at("ca.crt"), "--ca-key", at("node-n1.key")}, cli.ExitFailed, "not that of the certificate"},
		{[]string{"cert", "show", at("ca.key")}, cli.ExitFailed, "PRIVATE KEY"},
	} {
		code, _, errs := s.Run(c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, errs)
		require.Contains(t, errs, c.says)
	}
	now, err := os.ReadFile(at("node-n1.key"))
	require.NoError(t, err)
	require.Equal(t, key, now)
}
