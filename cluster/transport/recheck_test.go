package transport

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/nodetls"
	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// replace gives a file what others have.
func replace(t *testing.T, to string, from ...string) {
	t.Helper()
	var data []byte
	for _, f := range from {
		more, err := os.ReadFile(f)
		require.NoError(t, err)
		data = append(data, more...)
	}
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

// An authority is replaced in three steps without a restart. A connection lives through
// them if its certificate is always accepted, and is closed if not.
func TestAnAuthorityIsReplacedWhileConnectionsAreOpen(t *testing.T) {
	old, next := certstest.New(t, "orders"), certstest.New(t, "orders")
	files := old.Node("n1")
	id, err := nodetls.Open(files, "n1")
	require.NoError(t, err)
	to := listen(t, Options{ServerID: "n1.a", TLS: nodetls.Config{Mode: nodetls.Require, Identity: id}})
	stays := next.Node("n3") // a node that has the new certificate already
	stays.CA = old.CA
	replace(t, old.CA, old.CA, next.CA)
	other, err := nodetls.Open(stays, "n3")
	require.NoError(t, err)
	reload := func() {
		t.Helper()
		changed, err := id.Source().Reload()
		require.NoError(t, err)
		require.True(t, changed)
		to.closeUnproved()
	}
	reload()

	from := listen(t, secured(t, old, nodetls.Require, "n2", "n2.a"))
	late := listen(t, Options{ServerID: "n3.a", TLS: nodetls.Config{Mode: nodetls.Require, Identity: other}})
	address := to.Addr().String()
	first, err := from.DialRPC(patient(t), "n1.a", address)
	require.NoError(t, err)
	defer first.Close()
	second, err := late.DialRPC(patient(t), "n1.a", address)
	require.NoError(t, err)
	defer second.Close()
	var accepted []interface{ Close() error }
	for range 2 {
		c, err := to.RPC().Accept()
		require.NoError(t, err)
		accepted = append(accepted, c)
	}
	defer func() {
		for _, c := range accepted {
			c.Close()
		}
	}()
	plain, secured := to.Connections()
	require.Equal(t, []int{0, 2}, []int{plain, secured})

	own := next.Node("n1")
	replace(t, files.Key, own.Key)
	replace(t, files.Cert, own.Cert)
	reload()
	_, secured = to.Connections()
	require.Equal(t, 2, secured, "both authorities are still trusted")

	replace(t, files.CA, next.CA)
	reload()
	require.NoError(t, first.SetReadDeadline(time.Now().Add(patience)))
	_, err = first.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection with a certificate of the old authority is still open")
	require.NoError(t, second.SetReadDeadline(time.Now()))
	_, err = second.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the other one must stay open")
}

func TestACertificateThatEndsSoonIsAWarning(t *testing.T) {
	a := certstest.New(t, "orders")
	withEnd := func(node string, valid time.Duration) Options {
		id, err := nodetls.Open(a.Issue(certs.RoleNode, node, valid), node)
		require.NoError(t, err)
		return Options{ServerID: node + ".a", TLS: nodetls.Config{Mode: nodetls.Require, Identity: id}}
	}
	one, two := listen(t, withEnd("n1", 23*time.Hour)), listen(t, withEnd("n2", time.Hour))
	c, err := one.DialRPC(patient(t), "n2.a", two.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	now := time.Now()
	require.Len(t, one.CertificateProblems(now), 2)
	require.Contains(t, one.CertificateProblems(now)[1].Text, "the certificate of n2 ends at ")
	require.Contains(t, one.CertificateProblems(now.Add(2 * time.Hour))[1].Text, "the certificate of n2 has ended")
	require.Empty(t, one.CertificateProblems(now.Add(-8*24*time.Hour)))
	require.Empty(t, listen(t, Options{}).CertificateProblems(now))
}
