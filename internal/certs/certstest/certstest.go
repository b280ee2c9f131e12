// Package certstest makes the certificates of tests.
package certstest

import (
	"crypto"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tarry/internal/certs"
)

// Authority is that of a cluster, with a directory for what it signs.
type Authority struct {
	*certs.Authority
	Key crypto.Signer
	CA  string // its certificate's file

	t   testing.TB
	dir string
}

// New makes an authority for a cluster.
func New(t testing.TB, cluster string) *Authority {
	t.Helper()
	now := time.Now()
	a, key, err := certs.NewAuthority(cluster, now, now.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	made := &Authority{Authority: a, Key: key, t: t, dir: t.TempDir()}
	made.CA = filepath.Join(made.dir, "ca.crt")
	made.write(certs.WritePair(made.CA, filepath.Join(made.dir, "ca.key"), a.Cert, key))
	return made
}

func (a *Authority) write(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// Issue makes a certificate that is valid for so long from now, which may be negative.
func (a *Authority) Issue(role certs.Role, name string, valid time.Duration, hosts ...string) certs.Files {
	a.t.Helper()
	now := time.Now()
	dir, err := os.MkdirTemp(a.dir, "")
	a.write(err)
	leaf, key, err := a.Authority.Issue(role, name, hosts, now.Add(min(0, 2*valid)), now.Add(valid))
	a.write(err)
	f := certs.Files{Cert: filepath.Join(dir, "x.crt"), Key: filepath.Join(dir, "x.key"), CA: a.CA}
	a.write(certs.WritePair(f.Cert, f.Key, leaf, key))
	return f
}

// Node makes a valid certificate of a node.
func (a *Authority) Node(id string) certs.Files {
	a.t.Helper()
	return a.Issue(certs.RoleNode, id, time.Hour)
}
