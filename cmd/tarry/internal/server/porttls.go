package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"tarry/api/clienttls"
	"tarry/api/httpx"
	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/nodetls"
	"tarry/cluster/standby"
	"tarry/internal/certs"
)

// portTLS has the settings of TLS with the clients of one port.
type portTLS struct {
	Mode  clienttls.Mode
	Files certs.Files // CA: of the clients
}

// settings are those of a port, with the reasons for their defaults.
func (c *portTLS) settings(port string, reasons [4]string) []Setting {
	return []Setting{
		{Name: port + "-tls-mode", To: &c.Mode, def: clienttls.Off, shown: true, check: func(string) error { return c.check(port) },
			help:  "which clients --" + port + "-addr serves, a `mode`: off: without TLS; optional: both; require: with TLS (docs/tls.md)",
			Words: []string{"off", "optional", "require"}, Why: reasons[0]},
		{Name: port + "-tls-cert", To: &c.Files.Cert, shown: true, Values: "the path of a PEM file", Why: reasons[1],
			help: "`file` with the certificate that clients of --" + port + "-addr check"},
		{Name: port + "-tls-key", To: &c.Files.Key, shown: true, Values: "the path of a PEM file", Why: reasons[2],
			help: "`file` with its key"},
		{Name: port + "-client-ca", To: &c.Files.CA, shown: true, Values: "the path of a PEM file", Why: reasons[3],
			help: "`file` with the authorities of clients: one that speaks TLS must show a certificate of theirs"},
	}
}

func (c *portTLS) check(port string) error {
	if c.Mode != clienttls.Off && (c.Files.Cert == "" || c.Files.Key == "") {
		return fmt.Errorf("--%s-tls-mode is %v; that needs --%s-tls-cert and --%s-tls-key", port, c.Mode, port, port)
	}
	return nil
}

// closed reports whether the port serves only clients with a certificate.
func (c *portTLS) closed() bool { return c.Mode == clienttls.Require && c.Files.CA != "" }

// open reads the certificate and returns what makes a listener speak TLS.
func (c *portTLS) open(port, hint string, all *certificates) (func(net.Listener) net.Listener, error) {
	o := clienttls.Options{Mode: c.Mode, Hint: hint, Refused: func(from net.Addr, err error) {
		all.log.Warn("refused a client in the TLS handshake", "port", port, "from", from, "error", err)
	}}
	if c.Mode != clienttls.Off {
		s, err := certs.Open(c.Files, servable)
		if err != nil {
			return nil, fmt.Errorf("TLS with clients (--%s-tls-cert, --%s-tls-key, --%s-client-ca): %w", port, port, port, err)
		}
		all.add(port, s)
		o.Config = func() *tls.Config { return clientConfig(s.Current()) }
	}
	return func(l net.Listener) net.Listener { return clienttls.Listen(l, o) }, nil
}

// servable refuses a certificate that clients would refuse.
func servable(l *certs.Loaded) error {
	leaf, now := l.Certificate.Leaf, time.Now()
	usage := leaf.ExtKeyUsage
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate ended at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case len(usage) > 0 && !slices.Contains(usage, x509.ExtKeyUsageServerAuth) && !slices.Contains(usage, x509.ExtKeyUsageAny):
		return errors.New("the certificate is not for a server")
	}
	return nil
}

// clientConfig is made for each connection, because the files may change. A resumed session
// would not look at the client's certificate again.
func clientConfig(l *certs.Loaded) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{l.Certificate}, NextProtos: []string{"http/1.1"}}
	if l.Roots != nil {
		config.ClientAuth, config.ClientCAs, config.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, l.Roots, true
	}
	return config
}

// secured is TLS on all ports of a node, with their certificates, and the keys of gossip.
type secured struct {
	*certificates
	gossip          *gossipkeys.Ring // nil: there are none
	nodes           nodetls.Config
	primary         standby.Source // that this node follows; nil: none
	http, beanstalk func(net.Listener) net.Listener
}

func (c *Config) openTLS(log *slog.Logger) (s secured, err error) {
	s.certificates = newCertificates(log)
	if s.nodes, err = c.nodeTLS(s.certificates); err != nil {
		return s, err
	}
	if s.gossip, err = c.gossipKeys(); err != nil {
		return s, err
	}
	if c.secrets, err = c.secretKeys(); err != nil {
		return s, err
	}
	s.certificates.secrets = c.secrets
	if s.primary, err = c.Follow.source(); err != nil {
		return s, err
	}
	if s.http, err = c.HTTPTLS.open("http", httpx.PlainOnTLS(), s.certificates); err != nil {
		return s, err
	}
	s.beanstalk, err = c.BeanstalkTLS.open("beanstalk", "BAD_FORMAT\r\n", s.certificates)
	return s, err
}

// connKey is that of a request's connection in its context.
type connKey struct{}

func rememberConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(httpx.ConnContext(ctx, c), connKey{}, c)
}

// withTLSState sets what net/http sets by itself only if its listener is one of crypto/tls.
func withTLSState(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			r.TLS = clienttls.StateOf(c)
		}
		next.ServeHTTP(w, r)
	})
}
