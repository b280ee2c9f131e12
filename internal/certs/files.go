package certs

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	certMode = 0o644
	keyMode  = 0o600

	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY" // PKCS #8

	// maxFile bounds what is read of a file, in bytes.
	maxFile = 1 << 20
)

// WritePair writes a certificate and its key to two new files; only the owner may read the
// key. It fails with fs.ErrExist, and writes nothing, if one of them exists.
func WritePair(certFile, keyFile string, c *x509.Certificate, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	if err := writeNew(keyFile, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), keyMode); err != nil {
		return err
	}
	if err := writeNew(certFile, encode(c), certMode); err != nil {
		return errors.Join(err, os.Remove(keyFile)) // a key without a certificate is of no use
	}
	return nil
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: c.Raw})
}

func writeNew(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return finish(f, data)
}

// ReplaceCertificate replaces the certificate in a file at once, so that a reader finds
// the old one or the new one.
func ReplaceCertificate(path string, c *x509.Certificate) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(certMode), finish(f, encode(c))); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// finish writes, syncs and closes f, or removes it.
func finish(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReadCertificates returns the certificates in a file, at least one.
func ReadCertificates(path string) ([]*x509.Certificate, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func parseCertificates(data []byte) (list []*x509.Certificate, err error) {
	for len(data) > 0 {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != certBlock {
			return nil, fmt.Errorf("it has a block of %.40q; it takes only %s", block.Type, certBlock)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("it has no certificate in PEM")
	}
	return list, nil
}

// ReadAuthority reads an authority from its two files.
func ReadAuthority(certFile, keyFile string) (*Authority, error) {
	list, err := ReadCertificates(certFile)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%s: it has %d certificates; an authority signs with one", certFile, len(list))
	}
	data, err := readFile(keyFile)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	a, err := asAuthority(list[0], key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certFile, err)
	}
	return a, nil
}

func parseKey(data []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != keyBlock {
		return nil, fmt.Errorf("it has no %s in PEM", keyBlock)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("it has a key that cannot sign")
	}
	return signer, nil
}

// readFile reads a small file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(&limited{f, maxFile}); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b.Bytes(), nil
}

// limited fails when its file is larger than a certificate or key ever is.
type limited struct {
	f    *os.File
	left int
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.f.Read(b)
	if l.left -= n; l.left < 0 {
		return 0, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return n, err
}
