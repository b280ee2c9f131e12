package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Rule allows verbs on topics (docs/tokens.md).
type Rule struct {
	// Topics are names, or prefixes with a * behind them; ["*"] is all topics.
	Topics []string `json:"topics"`
	// Verbs are some of "add", "consume", "read", "manage", "push", "observe", "operate",
	// "admin".
	Verbs []string `json:"verbs"`
}

// TokenSpec is what a token may do.
type TokenSpec struct {
	Description string    `json:"description,omitzero"`
	Rules       []Rule    `json:"rules"`
	IDPrefix    string    `json:"id_prefix,omitzero"`  // of the ids of the jobs that it adds
	ExpiresAt   time.Time `json:"expires_at,omitzero"` // zero: it does not end
	// Limits is what it may use on each node.
	Limits TokenLimits `json:"limits,omitzero"`
}

// TokenLimits is what a token may use on each node; 0: any number.
type TokenLimits struct {
	Rate        float64 `json:"rate,omitzero"` // operations a second
	Connections uint32  `json:"connections,omitzero"`
	Waiters     uint32  `json:"waiters,omitzero"` // streams, and reserves that wait
	Bytes       uint64  `json:"bytes,omitzero"`   // of bodies a second
}

// Token is a token without its text, which is stored nowhere.
type Token struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	TokenSpec
	CreatedAt time.Time `json:"created_at,omitzero"`
	// OldUntil is until when the text before the last rotation is accepted, too.
	OldUntil time.Time `json:"old_until,omitzero"`
}

// TokenPut is what became of a token.
type TokenPut struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	// Token is its text, if that is new: it is shown this once.
	Token string `json:"token,omitzero"`
}

// Put makes a token, whose text is in the result, or changes what one may do. It is not
// repeated when its outcome is unknown, because the text would be lost.
func (c Tokens) Put(ctx context.Context, id string, t TokenSpec) (TokenPut, error) {
	return ask[TokenPut](ctx, c.client, request{method: http.MethodPut, path: tokenPath(id), in: t})
}

// Rotate gives a token a new text, which is in the result. The one before is accepted for
// the time of overlap.
func (c Tokens) Rotate(ctx context.Context, id string, overlap time.Duration) (TokenPut, error) {
	in := struct {
		Overlap float64 `json:"overlap"`
	}{overlap.Seconds()}
	return ask[TokenPut](ctx, c.client, request{method: http.MethodPost, path: tokenPath(id) + "/rotate", in: in})
}

// Delete revokes a token at once and for good.
func (c Tokens) Delete(ctx context.Context, id string) error {
	return c.client.end(ctx, http.MethodDelete, tokenPath(id), nil, new(done))
}

// Get returns a token, without its text.
func (c Tokens) Get(ctx context.Context, id string) (Token, error) {
	return read[Token](ctx, c.client, tokenPath(id))
}

// List lists tokens by their ids.
func (c Tokens) List(ctx context.Context) iter.Seq2[Token, error] {
	return pages("", func(after string) ([]Token, string, error) {
		query := url.Values{}
		if after != "" {
			query.Set("cursor", after)
		}
		q := reading(withQuery("/v1/tokens", query))
		q.most = maxJobReply
		out, err := ask[tokenPage](ctx, c.client, q)
		return out.Tokens, out.Next, err
	})
}

type tokenPage struct {
	Tokens []Token `json:"tokens"`
	Next   string  `json:"next"`
}

func tokenPath(id string) string { return "/v1/tokens/" + segment(id) }

// Identity is who the client is for the cluster, and what it may do.
type Identity struct {
	Mode string `json:"mode"` // "off", "report" or "enforce"
	// ID is the id of the token; empty: it has none, or one that is not known.
	ID string `json:"id,omitzero"`
	TokenSpec
}

// WhoAmI returns who the client is.
func (c *Client) WhoAmI(ctx context.Context) (Identity, error) {
	return read[Identity](ctx, c, "/v1/whoami")
}

// Auth is whether tokens are needed, and what is allowed without one.
type Auth struct {
	// Mode is "off": nothing is checked; "report": what is not allowed is done and counted; or
	// "enforce".
	Mode      string `json:"mode"`
	Anonymous []Rule `json:"anonymous"`
	Revision  uint64 `json:"revision"`
	// Tokens is how many there are. Bootstrapped is whether there ever was one.
	Tokens       uint64 `json:"tokens"`
	Bootstrapped bool   `json:"bootstrapped"`
}

// Auth returns whether tokens are needed.
func (c Tokens) Auth(ctx context.Context) (Auth, error) { return read[Auth](ctx, c.client, "/v1/auth") }

// SetAuth sets whether tokens are needed, and all that is allowed without one, if the present
// settings have the revision (0: there are none; AnyRevision).
func (c Tokens) SetAuth(ctx context.Context, mode string, anonymous []Rule, revision uint64) error {
	in := struct {
		Mode      string `json:"mode"`
		Anonymous []Rule `json:"anonymous,omitempty"`
	}{mode, anonymous}
	path := "/v1/auth"
	if revision != AnyRevision {
		path += "?if_revision=" + strconv.FormatUint(revision, 10)
	}
	_, err := ask[done](ctx, c.client, request{method: http.MethodPut, path: path, in: in, repeat: revision == AnyRevision})
	return err
}

// Bootstrap makes the first token, which may do everything. secret is what the file
// bootstrap-secret in the data directory of the node has; the client must have the address of
// only that node. Without TLS it goes to no other machine, unless WithTokenOverHTTP allows that.
func (c Tokens) Bootstrap(ctx context.Context, secret, id string) (TokenPut, error) {
	for _, node := range c.client.nodes.given {
		if !c.client.mayHaveSecrets(node) {
			return TokenPut{}, errorf(CodeInvalidArgument, "%w", inPlainText("the proof for a first token", node))
		}
	}
	in := struct {
		Secret string `json:"secret"`
		ID     string `json:"id,omitzero"`
	}{secret, id}
	return ask[TokenPut](ctx, c.client, request{method: http.MethodPost, path: "/v1/auth/bootstrap", in: in, here: true})
}
