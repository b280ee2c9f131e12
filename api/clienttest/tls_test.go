package clienttest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/client"
)

// A call does not go on for the client's patience when no certificate is accepted.
func TestACertificateIsAcceptedOrEndsTheCall(t *testing.T) {
	server := httptest.NewTLSServer(api.New(api.Options{Queue: apitest.New(t), Operator: &apitest.Operator{}}))
	t.Cleanup(server.Close)
	open := func(options ...client.Option) *client.Client {
		c, err := client.New([]string{server.URL}, append(options, client.WithPatience(time.Hour))...)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	mustAdd(t, open(client.WithTLS(&tls.Config{RootCAs: pool})), client.NewJob{Topic: "mail", Body: client.Text("x")})

	c := open()
	_, err := c.Add(t.Context(), client.NewJob{Topic: "mail", Body: client.Text("x")})
	require.ErrorIs(t, err, client.CodeNotApplied)
	require.ErrorContains(t, err, "certificate")
	for _, err := range c.Stream(t.Context(), client.StreamOptions{Topics: []string{"mail"}}) {
		require.ErrorContains(t, err, "certificate")
	}

	_, err = client.New([]string{server.URL}, client.WithTLS(&tls.Config{}), client.WithHTTPClient(server.Client()))
	require.ErrorContains(t, err, "WithTLS")
}
