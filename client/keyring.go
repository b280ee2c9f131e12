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
