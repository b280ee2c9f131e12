package client

import (
	"context"
	"net/http"
)

const keyringPath = "/v1/cluster/keyring"

// Keyring is the keys with which nodes encrypt gossip, by their fingerprints.
type Keyring struct {
	Revision uint64   `json:"revision"`
	Keys     []string `json:"keys"` // of the leader, the first one encrypts; empty: gossip is in plain text
	// Changed is the key that the call has installed, used or removed.
	Changed string     `json:"changed,omitempty"`
	Current int        `json:"current"` // how many nodes have the keys of the leader
	Nodes   []NodeKeys `json:"nodes"`
}

// NodeKeys is the gossip keys of one node.
type NodeKeys struct {
	ID       string   `json:"id"`
	Revision uint64   `json:"revision"`
	Keys     []string `json:"keys"`            // as in Keyring; empty if it did not reply
	Error    string   `json:"error,omitempty"` // why it did not reply, or did not take the change
}

// Keyring lists the gossip keys of all nodes.
func (c Keys) Keyring(ctx context.Context) (Keyring, error) {
	return read[Keyring](ctx, c.client, keyringPath)
}

// Install makes a new gossip key on all nodes, with which they decrypt from then on. A node
// that is away fetches it when it is back.
func (c Keys) Install(ctx context.Context) (Keyring, error) {
	return c.client.changeKeyring(ctx, http.MethodPost, "/install")
}

// Use makes all nodes encrypt gossip with a key that they have.
func (c Keys) Use(ctx context.Context, fingerprint string) (Keyring, error) {
	return c.client.changeKeyring(ctx, http.MethodPost, "/"+segment(fingerprint)+"/use")
}

// Remove removes a gossip key from all nodes. It fails unless all of them reply and
// encrypt with another one.
func (c Keys) Remove(ctx context.Context, fingerprint string) (Keyring, error) {
	return c.client.changeKeyring(ctx, http.MethodDelete, "/"+segment(fingerprint))
}

func (c *Client) changeKeyring(ctx context.Context, method, path string) (Keyring, error) {
	return ask[Keyring](ctx, c, request{method: method, path: keyringPath + path, work: OperatorTime})
}

// SecretKeys is the keys that seal the secrets of push targets (docs/push.md).
type SecretKeys struct {
	Keys  []SecretKey `json:"keys"`
	Plain int64       `json:"plain"` // secrets that are not sealed
}

// SecretKey is one key, by its id.
type SecretKey struct {
	ID     string `json:"id"`
	Topics int64  `json:"topics"`          // whose secrets are sealed with it
	Held   bool   `json:"held"`            // the node that replied has it
	Seals  bool   `json:"seals,omitempty"` // and seals with it
}

// Secrets lists the keys of the node that replies, the one that seals first, and others that
// secrets need.
func (c Keys) Secrets(ctx context.Context) (SecretKeys, error) {
	return read[SecretKeys](ctx, c.client, "/v1/secrets")
}

// Rewrapped is what became of the secrets of all topics.
type Rewrapped struct {
	Rewrapped int64  `json:"rewrapped"`
	Unchanged int64  `json:"unchanged"`
	Failed    int64  `json:"failed"`
	Reason    string `json:"reason,omitempty"` // of the first that failed
}

// RewrapSecrets seals all secrets with the first key of the node that replies.
func (c Keys) RewrapSecrets(ctx context.Context) (Rewrapped, error) {
	return ask[Rewrapped](ctx, c.client, request{method: http.MethodPost, path: "/v1/secrets/rewrap", work: OperatorTime, repeat: true})
}
