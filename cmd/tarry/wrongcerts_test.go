package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/clitest"
	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// closedNode is a node whose three TCP ports let in only who has a certificate.
type closedNode struct {
	*testing.T
	ours, theirs *certstest.Authority
	ports        map[string]string // addresses, by the names in the log
	log          clitest.LogBuffer
}

func newClosedNode(t *testing.T) *closedNode {
	n := &closedNode{T: t, ours: certstest.New(t, "orders"), theirs: certstest.New(t, "orders")}
	n.ports = map[string]string{"http": clitest.FreeAddr(t), "beanstalk": clitest.FreeAddr(t), "cluster": clitest.FreeAddr(t)}
	args := []string{"server", "--node-id", "n1", "--data-dir", t.TempDir(), "--gossip-addr", clitest.FreeAddr(t), "--disk-low-water", "0"}
	for port, addr := range n.ports {
		own := n.ours.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1")
		if port == "cluster" {
			own = n.ours.Node("n1")
			args = append(args, "--cluster-tls-ca", n.ours.CA)
		} else {
			args = append(args, "--"+port+"-client-ca", n.ours.CA)
		}
		args = append(args, "--"+port+"-addr", addr, "--"+port+"-tls-mode", "require", "--"+port+"-tls-cert", own.Cert, "--"+port+"-tls-key", own.Key)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out clitest.LogBuffer
	go func() { ended <- run(ctx, args, nil, &out, &n.log) }()
	t.Cleanup(func() { stop(); require.Zero(t, <-ended, "%v", &n.log) })
	for _, addr := range n.ports {
		require.Eventually(t, func() bool {
			c, err := net.Dial("tcp", addr)
			return err == nil && c.Close() == nil
		}, time.Minute, 10*time.Millisecond, "%v", &n.log)
	}
	return n
}

// later is a certificate that is not valid yet.
func (n *closedNode) later(role certs.Role, name string) certs.Files {
	dir, at := n.TempDir(), time.Now().Add(12*time.Hour)
	leaf, key, err := n.ours.Authority.Issue(role, name, nil, at, at.Add(time.Hour))
	require.NoError(n, err)
	f := certs.Files{Cert: filepath.Join(dir, "x.crt"), Key: filepath.Join(dir, "x.key")}
	require.NoError(n, certs.WritePair(f.Cert, f.Key, leaf, key))
	return f
}

// dial speaks TLS with a port.
func (n *closedNode) dial(port string, files certs.Files) (net.Conn, error) {
	roots := x509.NewCertPool()
	roots.AddCert(n.ours.Cert)
	config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	if port == "cluster" {
		config = &tls.Config{NextProtos: []string{"tarry/1"}, InsecureSkipVerify: true} // its certificate names no address
	}
	if files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		require.NoError(n, err)
		// Also one that the node would not ask for.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", n.ports[port], config)
}

// refusal returns the alert that a client with a certificate gets.
func (n *closedNode) refusal(port string, files certs.Files) error {
	c, err := n.dial(port, files)
	if err != nil {
		return err
	}
	defer c.Close()
	require.NoError(n, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = c.Read(make([]byte, 1)) // in TLS 1.3 the client is done before the node looks at its certificate
	return err
}

// speak makes a call, and returns the first bytes of the reply.
func (n *closedNode) speak(port string, c net.Conn, err error) (string, error) {
	require.NoError(n, err)
	defer c.Close()
	require.NoError(n, c.SetDeadline(time.Now().Add(30*time.Second)))
	text := map[string]string{"http": "GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "beanstalk": "list-tube-used\r\n", "cluster": strings.Repeat("x", 100)}[port]
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	reply := make([]byte, 200)
	got, err := c.Read(reply)
	return string(reply[:got]), err
}

// Whoever has no certificate for a port gets an alert of TLS, and the log has why, once in a while.
func TestEachPortRefusesTheCertificatesOfOthers(t *testing.T) {
	n := newClosedNode(t)
	client, node := n.ours.Issue(certs.RoleClient, "billing", time.Hour), n.ours.Node("n2")
	server := n.ours.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1")
	const bad, expired, stranger, missing = "bad certificate", "expired certificate", "unknown certificate authority", "certificate required"
	type row struct {
		name  string
		files certs.Files
		alert string
	}
	clients := []row{
		{"a server's", server, bad},
		{"of another authority", n.theirs.Issue(certs.RoleClient, "billing", time.Hour), stranger},
		{"ended", n.ours.Issue(certs.RoleClient, "billing", -time.Hour), expired},
		{"not yet", n.later(certs.RoleClient, "billing"), expired},
		{"none", certs.Files{}, missing},
	}
	for port, rows := range map[string][]row{
		"http": clients, "beanstalk": clients,
		"cluster": {
			{"a server's", server, bad},
			{"a client's", client, bad},
			{"a token's", n.ours.Issue(certs.RoleToken, "root", time.Hour), bad},
			{"of another authority", n.theirs.Node("n2"), bad},
			{"ended", n.ours.Issue(certs.RoleNode, "n2", -time.Hour), bad},
			{"not yet", n.later(certs.RoleNode, "n2"), bad},
			{"none", certs.Files{}, missing},
		},
	} {
		for _, c := range rows {
			for range 3 {
				require.ErrorContains(t, n.refusal(port, c.files), "remote error: tls: "+c.alert, "%s, %s", port, c.name)
			}
		}
		n.plainIsRefused(port)
		n.isLogged(port, 3*len(rows))
	}
	// A client's certificate lets in, and so does a node's, which is none of a token.
	for _, files := range []certs.Files{client, node} {
		c, err := n.dial("http", files)
		reply, err := n.speak("http", c, err)
		require.NoError(t, err)
		require.Regexp(t, `^HTTP/1.1 200 `, reply)
		c, err = n.dial("beanstalk", files)
		reply, err = n.speak("beanstalk", c, err)
		require.NoError(t, err)
		require.Equal(t, "USING default\r\n", reply)
	}
	c, err := n.dial("cluster", node)
	_, err = n.speak("cluster", c, err)
	require.NotContains(t, fmt.Sprint(err), "remote error: tls: ", "the certificate is a node's; what it says is none")
}

func (n *closedNode) plainIsRefused(port string) {
	c, err := net.Dial("tcp", n.ports[port])
	reply, err := n.speak(port, c, err)
	if port == "cluster" {
		require.Error(n, err, reply)
		return
	}
	require.NoError(n, err)
	require.Regexp(n, map[string]string{"http": `^HTTP/1.1 400`, "beanstalk": `^BAD_FORMAT`}[port], reply)
}

// isLogged requires that the log has fewer lines about a port than calls were refused there.
func (n *closedNode) isLogged(port string, calls int) {
	of := fmt.Sprintf("refused a client in the TLS handshake\" port=%s ", port)
	if port == "cluster" {
		of = "refused a connection to the cluster port\" "
	}
	lines := 0
	require.Eventually(n, func() bool {
		lines = strings.Count(n.log.String(), of)
		return lines > 0
	}, time.Minute, 10*time.Millisecond, "%v", &n.log)
	require.Less(n, lines, calls)
}
