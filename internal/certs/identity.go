package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Role is what the holder of a certificate may be.
type Role string

const (
	RoleCA     Role = "ca"     // signs the others; it has no name
	RoleNode   Role = "node"   // a node of the cluster; its name is the node id
	RoleServer Role = "server" // the end of HTTP or beanstalkd that clients call
	RoleClient Role = "client" // a producer, a consumer or an operator
	RoleToken  Role = "token"  // a client that acts with a token; its name is the token's id
)

// Identity is what the URI of a certificate names.
type Identity struct {
	Cluster string
	Role    Role
	Name    string // empty for RoleCA
}

const (
	scheme = "tarry"
	// MaxName bounds the names of clusters and holders, in bytes.
	MaxName = 64
	// maxCluster is what one label of a DNS name may have: a URI's host is checked as one.
	maxCluster = 63
)

// ErrNoIdentity is returned for a certificate without exactly one valid URI of Tarry.
var ErrNoIdentity = errors.New("the certificate does not name its holder as tarry://CLUSTER/ROLE/NAME")

// CheckCluster returns an error unless name can be the name of a cluster in a certificate.
func CheckCluster(name string) error {
	valid := len(name) >= 1 && len(name) <= maxCluster && name[0] != '-' && name[len(name)-1] != '-'
	for _, c := range name {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !valid {
		return fmt.Errorf("the name of the cluster must have 1 to %d of a-z, 0-9 and - (not first or last), got %.80q", maxCluster, name)
	}
	return nil
}

// check returns an error unless id can be written into a certificate.
func (id Identity) check() error {
	if err := CheckCluster(id.Cluster); err != nil {
		return err
	}
	switch id.Role {
	case RoleCA:
		if id.Name != "" {
			return fmt.Errorf("an authority has no name of its own, got %.80q", id.Name)
		}
		return nil
	case RoleNode, RoleServer, RoleClient, RoleToken:
		if n := len(id.Name); n < 1 || n > MaxName || !utf8.ValidString(id.Name) {
			return fmt.Errorf("the name of a %s must have 1 to %d bytes of UTF-8, got %.80q", id.Role, MaxName, id.Name)
		}
		return nil
	}
	return fmt.Errorf("there is no role %.80q", id.Role)
}

// String returns the URI.
func (id Identity) String() string { return id.uri().String() }

func (id Identity) uri() *url.URL {
	path, raw := "/"+string(id.Role), "/"+string(id.Role)
	if id.Role != RoleCA {
		path, raw = path+"/"+id.Name, raw+"/"+url.PathEscape(id.Name)
	}
	return &url.URL{Scheme: scheme, Host: id.Cluster, Path: path, RawPath: raw}
}

// IdentityOf returns the identity of a certificate's holder. It does not verify the
// certificate. The error wraps ErrNoIdentity.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	var found []Identity
	for _, u := range c.URIs {
		if u.Scheme != scheme {
			continue
		}
		id, err := parse(u)
		if err != nil {
			return Identity{}, err
		}
		found = append(found, id)
	}
	if len(found) != 1 {
		return Identity{}, fmt.Errorf("%w: it has %d such names", ErrNoIdentity, len(found))
	}
	return found[0], nil
}

// parse accepts only what uri makes, so that one holder has one name.
func parse(u *url.URL) (Identity, error) {
	role, name, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	plain, err := url.PathUnescape(name)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrNoIdentity, err)
	}
	id := Identity{Cluster: u.Host, Role: Role(role), Name: plain}
	if err := id.check(); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrNoIdentity, err)
	}
	if id.String() != u.String() {
		return Identity{}, fmt.Errorf("%w: %.300q is not how %q is written", ErrNoIdentity, u, id)
	}
	return id, nil
}
