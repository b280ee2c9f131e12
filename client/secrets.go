package client

import (
	"context"
	"net/http"
)

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
