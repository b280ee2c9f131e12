package certs

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pairFiles has an authority and a node's certificate in files.
type pairFiles struct {
	authority *Authority
	dir       string
	files     Files
}

func issue(t *testing.T, cluster, node string) pairFiles {
	t.Helper()
	now, dir := time.Now(), t.TempDir()
	a, key, err := NewAuthority(cluster, now, now.Add(time.Hour))
	require.NoError(t, err)
	p := pairFiles{authority: a, dir: dir, files: Files{Cert: filepath.Join(dir, "n.crt"), Key: filepath.Join(dir, "n.key"), CA: filepath.Join(dir, "ca.crt")}}
	require.NoError(t, WritePair(p.files.CA, filepath.Join(dir, "ca.key"), a.Cert, key))
	leaf, key, err := a.Issue(RoleNode, node, []string{"n1.example", "10.0.0.1"}, now, now.Add(time.Minute))
	require.NoError(t, err)
	require.NoError(t, WritePair(p.files.Cert, p.files.Key, leaf, key))
	return p
}

func TestAPairIsWrittenOnceAndItsKeyIsTheOwners(t *testing.T) {
	p := issue(t, "orders", "n1")
	info, err := os.Stat(p.files.Key)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	before, err := os.ReadFile(p.files.Key)
	require.NoError(t, err)

	now := time.Now()
	leaf, key, err := p.authority.Issue(RoleNode, "n1", nil, now, now.Add(time.Minute))
	require.NoError(t, err)
	for _, missing := range []string{"", p.files.Cert, p.files.Key} { // whichever of the two exists
		if missing != "" {
			require.NoError(t, os.Rename(missing, missing+".away"))
		}
		require.ErrorIs(t, WritePair(p.files.Cert, p.files.Key, leaf, key), fs.ErrExist)
		if missing != "" {
			require.NoFileExists(t, missing, "half of a pair stays behind")
			require.NoError(t, os.Rename(missing+".away", missing))
		}
	}
	after, err := os.ReadFile(p.files.Key)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestACertificateIsForItsRole(t *testing.T) {
	p := issue(t, "orders", "n1")
	now := time.Now()
	roots := x509.NewCertPool()
	roots.AddCert(p.authority.Cert)
	for role, good := range map[Role][2]bool{RoleNode: {true, true}, RoleServer: {true, false}, RoleClient: {false, true}} {
		leaf, _, err := p.authority.Issue(role, "n 1/ü", []string{"a.example", "::1"}, now, now.Add(24*time.Hour))
		require.NoError(t, err)
		id, err := IdentityOf(leaf)
		require.NoError(t, err)
		require.Equal(t, Identity{"orders", role, "n 1/ü"}, id)
		require.Equal(t, []string{"a.example"}, leaf.DNSNames)
		require.Equal(t, "::1", leaf.IPAddresses[0].String())
		require.Equal(t, p.authority.Cert.NotAfter, leaf.NotAfter, "no certificate outlives its authority")
		for i, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
			require.Equal(t, good[i], err == nil, "%s: %v", role, err)
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	p := issue(t, "orders", "n1")
	now := time.Now()
	for name, c := range map[string]struct {
		role Role
		name string
		host string
		end  time.Duration
	}{
		"another authority": {RoleCA, "", "h", 1}, "no role": {"boss", "n", "h", 1}, "no name": {RoleNode, "", "h", 1},
		"a port": {RoleNode, "n", "h:80", 1}, "an empty label": {RoleNode, "n", "a..b", 1}, "past": {RoleNode, "n", "h", -1},
	} {
		_, _, err := p.authority.Issue(c.role, c.name, []string{c.host}, now, now.Add(c.end*time.Minute))
		require.Error(t, err, name)
	}
	for _, cluster := range []string{"", "a.b", "A", "-a", "a-", "a/b", string(make([]byte, 64))} {
		_, _, err := NewAuthority(cluster, now, now.Add(time.Hour))
		require.Error(t, err, "%q", cluster)
	}
}

func TestAnIdentityHasOneSpelling(t *testing.T) {
	for _, text := range []string{
		"tarry://orders/node/n%31", "tarry://orders/node/n1/", "tarry://orders/node/", "tarry://orders/node", "tarry://orders/ca/x",
		"tarry://orders/boss/n1", "tarry:///node/n1", "tarry://u@orders/node/n1", "tarry://orders/node/n1?x", "tarry://orders/node/n1#x", "tarry://orders:1/node/n1",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		_, err = IdentityOf(&x509.Certificate{URIs: []*url.URL{u}})
		require.ErrorIs(t, err, ErrNoIdentity, text)
	}
	one := Identity{"orders", RoleNode, "n1"}.uri()
	_, err := IdentityOf(&x509.Certificate{URIs: []*url.URL{one, one}})
	require.ErrorIs(t, err, ErrNoIdentity, "two names")
	_, err = IdentityOf(&x509.Certificate{})
	require.ErrorIs(t, err, ErrNoIdentity)
}

func TestRenewKeepsHolderAndKey(t *testing.T) {
	p := issue(t, "orders", "n1")
	list, err := ReadCertificates(p.files.Cert)
	require.NoError(t, err)
	now := time.Now()
	next, err := p.authority.Renew(list[0], now, now.Add(30*time.Minute))
	require.NoError(t, err)
	require.NoError(t, ReplaceCertificate(p.files.Cert, next))
	s, err := Open(p.files, nil)
	require.NoError(t, err, "the old key fits")
	leaf := s.Current().Certificate.Leaf
	require.True(t, leaf.NotAfter.After(list[0].NotAfter))
	require.Equal(t, list[0].URIs, leaf.URIs)
	require.Equal(t, list[0].DNSNames, leaf.DNSNames)
	require.Len(t, leaf.IPAddresses, 1)

	_, err = issue(t, "other", "n1").authority.Renew(list[0], now, now.Add(time.Minute))
	require.ErrorContains(t, err, "cluster orders")

	// The same names, signed by somebody else.
	_, err = issue(t, "orders", "n1").authority.Renew(list[0], now, now.Add(time.Minute))
	require.ErrorContains(t, err, "this authority has not signed it")
}

func TestABadPairKeepsTheOld(t *testing.T) {
	p, other := issue(t, "orders", "n1"), issue(t, "orders", "n1")
	s, err := Open(p.files, nil)
	require.NoError(t, err)
	first := s.Current()
	changed, err := s.Reload()
	require.NoError(t, err)
	require.False(t, changed)

	swap := func(from, to string) {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, data, 0o600))
	}
	swap(other.files.Cert, p.files.Cert) // its key has not come yet
	_, err = s.Reload()
	require.ErrorContains(t, err, "the certificate in use is kept")
	require.Same(t, first, s.Current())
	_, err = s.Reload()
	require.NoError(t, err, "the same files are an error once")
	require.EqualValues(t, 1, s.Failures())

	swap(other.files.Key, p.files.Key)
	changed, err = s.Reload()
	require.NoError(t, err)
	require.True(t, changed)
	require.NotSame(t, first, s.Current())

	require.NoError(t, os.Remove(p.files.CA))
	for range 2 {
		_, _ = s.Reload()
	}
	require.EqualValues(t, 2, s.Failures(), "a missing file counts once, too")
}

func TestARefusedPairIsTakenWhenItIsGood(t *testing.T) {
	p, other := issue(t, "orders", "n1"), issue(t, "orders", "n1")
	var refuse error
	s, err := Open(p.files, func(*Loaded) error { return refuse })
	require.NoError(t, err)
	first := s.Current()
	for _, f := range [][2]string{{other.files.Cert, p.files.Cert}, {other.files.Key, p.files.Key}} {
		data, err := os.ReadFile(f[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f[1], data, 0o600))
	}
	refuse = errors.New("it is not valid yet")
	_, err = s.Reload()
	require.ErrorIs(t, err, refuse)
	require.Same(t, first, s.Current())
	refuse = nil
	changed, err := s.Reload()
	require.NoError(t, err)
	require.True(t, changed)
	require.NotSame(t, first, s.Current())
	changed, err = s.Reload()
	require.NoError(t, err)
	require.False(t, changed)
}

func FuzzIdentity(f *testing.F) {
	f.Add("tarry://orders/node/n1")
	f.Add("tarry://orders/client/a%20b")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		if id, err := IdentityOf(&x509.Certificate{URIs: []*url.URL{u}}); err == nil {
			require.Equal(t, u.String(), id.String())
		}
	})
}
