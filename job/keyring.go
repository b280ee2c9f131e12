package job

import "slices"

// Keyring lists the keys with which nodes encrypt gossip. It names them by their
// fingerprints.
type Keyring struct {
	Revision uint64
	Keys     []string // of the leader, the first one encrypts; empty: it has none
	Nodes    []NodeRing
	Changed  string // the key that the call has installed, used or removed
}

// NodeRing is the gossip keys of one member.
type NodeRing struct {
	ID       string
	Revision uint64
	Keys     []string // as in Keyring; empty if it did not reply
	Error    string   // why it did not reply, or did not adopt the change
}

// Current returns how many members have the same keys as the leader.
func (k *Keyring) Current() (n int) {
	for _, node := range k.Nodes {
		if node.Error == "" && node.Revision == k.Revision && slices.Equal(node.Keys, k.Keys) {
			n++
		}
	}
	return n
}

// KeyringChange is what an operator may do with the gossip keys.
type KeyringChange uint8

const (
	KeyInstall KeyringChange = iota + 1 // make a key that decrypts
	KeyUse                              // encrypt with a key
	KeyRemove
)
