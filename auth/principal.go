package auth

import (
	"context"
	"strings"

	"tarry/job"
)

// Principal is who causes an operation, as the operation in the log names them. The zero
// value is nobody: a client without a token, who may do what the anonymous rules allow.
type Principal struct {
	text string
}

// System is the node itself, which may do everything. Only a node's own work has it: a
// client gets its principal from its token.
func System() Principal { return Principal{text: job.SystemPrincipal} }

// TokenPrincipal is the holder of a token. An id that no token can have is nobody.
func TokenPrincipal(id string) Principal {
	if job.CheckTokenID("id", id) != nil {
		return Principal{}
	}
	return Principal{text: id}
}

// SecretPrincipal is who has the text of a token, of which an operation in the log carries a
// digest: the state machine does nothing for a text that a rotation has ended, also when the
// node that accepted it did not know of that yet.
func SecretPrincipal(s Secret) Principal { return Principal{text: s.principal} }

// mark is the part of a text's hash that tells it from the others of its token.
func mark(hash []byte) string {
	if len(hash) < job.PrincipalMarkBytes {
		return ""
	}
	return textEncoding.EncodeToString(hash[:job.PrincipalMarkBytes])
}

// split returns the id of the token and, if the principal has a text, its mark.
func (p Principal) split() (id, mark string, text bool) {
	return strings.Cut(p.text, job.PrincipalSeparator)
}

// DecodePrincipal returns the principal of an operation in the log.
func DecodePrincipal(text string) Principal { return Principal{text: text} }

// Encode returns what an operation in the log has of the principal; empty: nobody.
func (p Principal) Encode() string { return p.text }

// IsSystem reports whether it is the node itself.
func (p Principal) IsSystem() bool { return p.text == job.SystemPrincipal }

// IsAnonymous reports whether it is nobody.
func (p Principal) IsAnonymous() bool { return p.text == "" }

// TokenID returns the id of its token; empty: it has none.
func (p Principal) TokenID() string {
	if p.IsSystem() {
		return ""
	}
	id, _, _ := p.split()
	return id
}

// String is for logs and messages.
func (p Principal) String() string {
	switch {
	case p.IsSystem():
		return "system"
	case p.IsAnonymous():
		return "anonymous"
	}
	return "token " + p.TokenID()
}

// ContextKey is the key of a context's value of the type *Principal: who causes what is done in it.
type ContextKey struct{}

// NewContext returns a context in which p causes what is done.
func NewContext(ctx context.Context, p Principal) context.Context {
	if p == FromContext(ctx) {
		return ctx
	}
	return context.WithValue(ctx, ContextKey{}, &p)
}

// FromContext returns who causes what is done in a context; by default nobody.
func FromContext(ctx context.Context) Principal {
	if p, _ := ctx.Value(ContextKey{}).(*Principal); p != nil {
		return *p
	}
	return Principal{}
}
