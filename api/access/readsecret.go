package access

import (
	"net/http"

	"tarry/auth"
)

// readSecret is the token of a header. A connection keeps the last one, so that a client that
// keeps its connection has its token read and hashed once, and not with every request. Whether
// the token is valid is decided for each request all the same.
type readSecret struct {
	header string
	secret auth.Secret
}

// secretOf is SecretOf. c may be nil.
func (c *Connection) secretOf(h http.Header) (auth.Secret, error) {
	given := h["Authorization"]
	if c == nil || len(given) != 1 {
		return SecretOf(h)
	}
	if last := c.last.Load(); last != nil && sameText(last.header, given[0]) {
		return last.secret, nil
	}
	secret, err := SecretOf(h)
	if err == nil {
		c.last.Store(&readSecret{header: given[0], secret: secret})
	}
	return secret, err
}

// sameText reports whether two texts are the same, in a time that does not depend on where they
// differ: clients behind a proxy may share a connection. It is crypto/subtle for strings.
func sameText(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	var differ byte
	for i := range len(a) {
		differ |= a[i] ^ b[i]
	}
	return differ == 0
}
