package invitation

import (
	"crypto/ed25519"
	"encoding/binary"
)

// NonceBytes is the size of a nonce.
const NonceBytes = 32

// Proof is what a node signs to prove that it has an invitation. It is good for one question of
// one leader, and for the server that answers at its own address: who passes the question on to
// the holder of an invitation does not become a member by the answer.
type Proof struct {
	Cluster string // the id of the leader's
	Leader  string // server id
	Server  string // the id of the server that signs
	Address string // its cluster address, as it tells others
	Nonce   []byte // of the leader, random, used once
}

// Sign returns the signature of a proof.
func (s Secret) Sign(p Proof) []byte { return ed25519.Sign(s.key, p.message()) }

// Verify reports whether the holder of the invitation with that public key has signed p.
func Verify(publicKey []byte, p Proof, signature []byte) bool {
	return len(publicKey) == ed25519.PublicKeySize && len(p.Nonce) == NonceBytes && ed25519.Verify(publicKey, p.message(), signature)
}

// message has the lengths of the fields, so that no two proofs have the same one.
func (p Proof) message() []byte {
	b := []byte("tarry invitation 1\n")
	for _, field := range [...]string{p.Cluster, p.Leader, p.Server, p.Address, string(p.Nonce)} {
		b = append(binary.AppendUvarint(b, uint64(len(field))), field...)
	}
	return b
}
