package server

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/certs"
)

func TestACertificateThatClientsWouldRefuseIsRefused(t *testing.T) {
	now := time.Now()
	leaf := func(from, to time.Time, usage ...x509.ExtKeyUsage) *certs.Loaded {
		return &certs.Loaded{Certificate: tls.Certificate{Leaf: &x509.Certificate{NotBefore: from, NotAfter: to, ExtKeyUsage: usage}}}
	}
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	require.NoError(t, servable(leaf(before, after)))
	require.NoError(t, servable(leaf(before, after, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth)))
	require.NoError(t, servable(leaf(before, after, x509.ExtKeyUsageAny)))
	require.ErrorContains(t, servable(leaf(before, after, x509.ExtKeyUsageClientAuth)), "not for a server")
	require.ErrorContains(t, servable(leaf(before, before.Add(time.Minute))), "ended at")
	require.ErrorContains(t, servable(leaf(after, after.Add(time.Minute))), "not valid before")
}
