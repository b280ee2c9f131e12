package integration

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// signed makes a certificate for a name of the cluster, which the authority of a directory has
// signed; ended: it is not valid any more.
func signed(t *testing.T, dir, name string, ended bool) tls.Certificate {
	ca, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	id, err := url.Parse("tarry://orders/" + name)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	until := time.Now().Add(time.Hour)
	if ended {
		until = time.Now().Add(-time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), URIs: []*url.URL{id}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-2 * time.Hour), NotAfter: until,
	}, ca.Leaf, key.Public(), ca.PrivateKey)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// alert makes a connection with a certificate, or without one, and returns how it ends. The
// client of TLS 1.3 is done before the server has looked at its certificate.
func alert(t *testing.T, addr string, own ...tls.Certificate) error {
	dialer := &net.Dialer{Timeout: patience}
	conn, err := tls.DialWithDialer(dialer, "tcp", addr, &tls.Config{Certificates: own, NextProtos: []string{"tarry/1", "http/1.1"}, InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Read(make([]byte, 1))
	return err
}

// Bad credentials get an alert of TLS or a status, and many of them few lines in the log.
func TestBadCredentialsAtRealPorts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	dir, others := c.certificates(), t.TempDir()
	c.clusterTLS("require")
	c.cert(dir, "server", "q", "--host", "127.0.0.1")
	c.cert(others, "ca", "--cluster", "orders")
	n := c.Nodes()[0]
	for port, mode := range map[string]string{"HTTP": "optional", "BEANSTALK": "require"} { // the harness speaks plain HTTP
		n.Setenv("TARRY_"+port+"_TLS_MODE", mode)
		n.Setenv("TARRY_"+port+"_TLS_CERT", filepath.Join(dir, "server-q.crt"))
		n.Setenv("TARRY_"+port+"_TLS_KEY", filepath.Join(dir, "server-q.key"))
		n.Setenv("TARRY_"+port+"_CLIENT_CA", filepath.Join(dir, "ca.crt"))
	}
	c.start(n)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	require.NoError(t, c.Enforce(ctx))

	attempts := 0
	for name, certificate := range map[string]tls.Certificate{
		"another authority": signed(t, others, "node/n1", false),
		"ended":             signed(t, dir, "node/n2", true),
		"another role":      signed(t, dir, "client/billing", false),
	} {
		for range 5 {
			attempts++
			require.ErrorContains(t, alert(t, n.Cluster, certificate), "remote error: tls:", "cluster port: %s", name)
			if name != "another role" {
				require.ErrorContains(t, alert(t, n.HTTP, certificate), "remote error: tls:", "HTTP: %s", name)
				require.ErrorContains(t, alert(t, n.Beanstalk, certificate), "remote error: tls:", "beanstalkd: %s", name)
			}
		}
	}
	require.ErrorContains(t, alert(t, n.HTTP), "remote error: tls:", "no certificate")
	for _, line := range []string{"refused a connection to the cluster port", "refused a client in the TLS handshake"} {
		c.until(func() error {
			out, err := n.Output()
			if err == nil && !strings.Contains(out, line) {
				err = fmt.Errorf("it has not logged %q", line)
			}
			require.Less(t, strings.Count(out, line), attempts/2, "one in ten seconds")
			return err
		})
	}

	// With TLS as it must be, the token counts.
	root, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(root))
	get := func(certificate tls.Certificate, headers ...string) (status int, challenge string) {
		config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}
		client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+n.HTTP+"/v1/topics", nil)
		require.NoError(t, err)
		for _, h := range headers {
			q.Header.Add("Authorization", h)
		}
		c.until(func() error { // while an unknown token is asked for
			resp, err := client.Do(q)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if status, challenge = resp.StatusCode, resp.Header.Get("WWW-Authenticate"); status == http.StatusServiceUnavailable {
				return fmt.Errorf("status %d", status)
			}
			return nil
		})
		return status, challenge
	}
	plain, named := signed(t, dir, "client/billing", false), signed(t, dir, "token/root", false)
	bearer := "Bearer " + c.Access().Token
	for name, headers := range map[string][]string{"no token": nil, "an unknown token": {"Bearer tarry_nobody"}} {
		status, challenge := get(plain, headers...)
		require.Equal(t, http.StatusUnauthorized, status, name)
		require.Contains(t, challenge, "Bearer", name)
	}
	for name, test := range map[string]struct {
		certificate tls.Certificate
		headers     []string
		status      int
	}{
		"a token":                   {plain, []string{bearer}, http.StatusOK},
		"a certificate":             {named, nil, http.StatusOK},
		"a token and a certificate": {named, []string{bearer}, http.StatusBadRequest},
		"two tokens":                {plain, []string{bearer, bearer}, http.StatusBadRequest},
	} {
		status, _ := get(test.certificate, test.headers...)
		require.Equal(t, test.status, status, name)
	}

	conn, err := net.Dial("tcp", n.Beanstalk)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write([]byte("list-tubes\r\n"))
	require.NoError(t, err)
	reply, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "BAD_FORMAT\r\n", reply)
}
