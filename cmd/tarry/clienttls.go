package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"

	"github.com/spf13/pflag"
)

// clientTLS names the files of the certificates with which a command calls nodes that
// have https:// addresses.
type clientTLS struct{ ca, cert, key string }

const (
	caEnv   = "TARRY_TLS_CA"
	certEnv = "TARRY_TLS_CERT"
	keyEnv  = "TARRY_TLS_KEY"
)

func (f *clientTLS) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.ca, "tls-ca", os.Getenv(caEnv), "PEM `file` with the authorities of the nodes' certificates; default: those of the system; also set by "+caEnv)
	flags.StringVar(&f.cert, "tls-cert", os.Getenv(certEnv), "PEM `file` with a certificate of one's own, for nodes that ask for one; also set by "+certEnv)
	flags.StringVar(&f.key, "tls-key", os.Getenv(keyEnv), "PEM `file` with its key; also set by "+keyEnv)
}

// config reads the files. It returns nil if none is named.
func (f *clientTLS) config() (*tls.Config, error) {
	if *f == (clientTLS{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s has no certificate in PEM", f.ca)
		}
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return nil, usagef("--tls-cert and --tls-key need each other; only one is given")
	case f.cert != "":
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--tls-cert, --tls-key: %w", err)
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
