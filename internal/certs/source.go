package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Files names a certificate (with its chain), its key, and the authorities that the
// others' certificates are checked against. All are PEM.
type Files struct {
	Cert, Key string
	CA        string // empty: none; more than one while an authority is replaced
}

// Loaded is what Files held at one time. It does not change.
type Loaded struct {
	Certificate tls.Certificate // with its Leaf
	Roots       *x509.CertPool  // nil without Files.CA
	Authorities []*x509.Certificate
}

// fingerprint tells two states of the files apart.
type fingerprint [sha256.Size]byte

// Source is a certificate that may be replaced while the process runs. Its methods may be
// called from any goroutine.
type Source struct {
	files    Files
	check    func(*Loaded) error
	current  atomic.Pointer[Loaded]
	failures atomic.Uint64

	mu      sync.Mutex  // held by Reload
	seen    fingerprint // of the files when they were last read
	refused bool        // these
}

// Open reads the files. check, which may be nil, may refuse what they hold, now and at
// every reload.
func Open(files Files, check func(*Loaded) error) (*Source, error) {
	s := &Source{files: files, check: check}
	l, seen, err := s.read()
	if err != nil {
		return nil, err
	}
	s.seen = seen
	s.current.Store(l)
	return s, nil
}

// Current returns what is in use.
func (s *Source) Current() *Loaded { return s.current.Load() }

// Failures counts the reloads that failed.
func (s *Source) Failures() uint64 { return s.failures.Load() }

// Reload reads the files again and reports whether it took something new. After an error
// the old remains in use. Files that have not changed since the last call are neither new
// nor an error, so that it may be called often.
func (s *Source) Reload() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, seen, err := s.read()
	if seen == s.seen && (err != nil || !s.refused) {
		return false, nil
	}
	// What was refused may be good now, such as a certificate that was not valid yet.
	s.seen, s.refused = seen, err != nil
	if err != nil {
		s.failures.Add(1)
		return false, fmt.Errorf("the certificate in use is kept: %w", err)
	}
	s.current.Store(l)
	return true, nil
}

// read reads and checks the files. The fingerprint is valid in any case.
func (s *Source) read() (*Loaded, fingerprint, error) {
	digest := sha256.New()
	var content [3][]byte
	for i, path := range []string{s.files.Cert, s.files.Key, s.files.CA} {
		if path == "" {
			continue
		}
		data, err := readFile(path)
		if err != nil {
			return nil, sha256.Sum256([]byte(err.Error())), err
		}
		sum := sha256.Sum256(data)
		digest.Write(sum[:])
		content[i] = data
	}
	l, err := s.load(content[0], content[1], content[2])
	if err == nil && s.check != nil {
		err = s.check(l)
	}
	return l, fingerprint(digest.Sum(nil)), err
}

func (s *Source) load(cert, key, authorities []byte) (*Loaded, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", s.files.Cert, s.files.Key, err)
	}
	if pair.Leaf == nil {
		return nil, errors.New("the certificate was not parsed") // GODEBUG x509keypairleaf=0
	}
	l := &Loaded{Certificate: pair}
	if s.files.CA == "" {
		return l, nil
	}
	if l.Authorities, err = parseCertificates(authorities); err != nil {
		return nil, fmt.Errorf("authorities %s: %w", s.files.CA, err)
	}
	l.Roots = x509.NewCertPool()
	for _, c := range l.Authorities {
		if !c.IsCA {
			return nil, fmt.Errorf("authorities %s: %q is no certificate of an authority", s.files.CA, c.Subject)
		}
		l.Roots.AddCert(c)
	}
	return l, nil
}
