package cli

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"

	"github.com/spf13/pflag"
)

// ClientTLS names the files of the certificates with which a command calls nodes that
// have https:// addresses.
type ClientTLS struct{ CA, Cert, Key string }

const (
	CAEnv   = "TARRY_TLS_CA"
	CertEnv = "TARRY_TLS_CERT"
	KeyEnv  = "TARRY_TLS_KEY"
)

func (f *ClientTLS) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.CA, "tls-ca", os.Getenv(CAEnv), "PEM `file` with the authorities of the nodes' certificates; default: those of the system; also set by "+CAEnv)
	flags.StringVar(&f.Cert, "tls-cert", os.Getenv(CertEnv), "PEM `file` with a certificate of one's own, for nodes that ask for one; also set by "+CertEnv)
	flags.StringVar(&f.Key, "tls-key", os.Getenv(KeyEnv), "PEM `file` with its key; also set by "+KeyEnv)
}

// Config reads the files. It returns nil if none is named.
func (f *ClientTLS) Config() (*tls.Config, error) {
	if *f == (ClientTLS{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, Usagef("--tls-ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usagef("--tls-ca: %s has no certificate in PEM", f.CA)
		}
	}
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return nil, Usagef("--tls-cert and --tls-key need each other; only one is given")
	case f.Cert != "":
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, Usagef("--tls-cert, --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// webClient returns a client for requests with these certificates. It follows no redirect, as
// a node sends none.
func webClient(certificates *tls.Config) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.DisableKeepAlives = certificates, true
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
