// Package invitation is how a node proves that an operator has invited it to a cluster. A Secret
// is the text of an invitation, which only its holder has: the seed of an Ed25519 key. The state
// of the cluster has the public key. The node signs what the leader sends it, so the text never
// travels, and a signature that somebody has recorded opens nothing (Proof).
//
// The package knows nothing of clusters. Package membership asks for proofs and checks them; the
// state machine decides which server uses an invitation.
package invitation

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"tarry/internal/keyfile"
	"tarry/job"
)

const (
	// textPrefix begins every text, so that scanners for leaked secrets find it.
	textPrefix = "tarry-invitation_"
	crcDigits  = 8

	// maxTextBytes bounds what is read of a file. It is more than any text has.
	maxTextBytes = 300
)

// textEncoding refuses texts of which another one has the same bytes.
var textEncoding = base64.RawURLEncoding.Strict()

var (
	// ErrNotInvitation is returned for a text that is not an invitation.
	ErrNotInvitation = errors.New("it is not an invitation of Tarry, which is tarry-invitation_ID_SECRET_CHECKSUM")
	// ErrMistyped is returned for a text whose checksum does not match.
	ErrMistyped = errors.New("its checksum does not match: it is mistyped or cut short")
)

// Secret is an invitation as its holder has it. Formatted, it shows only its id.
type Secret struct {
	id   string
	text string
	key  ed25519.PrivateKey
}

// Generate makes the invitation with an id from random bytes, which must be unpredictable.
func Generate(random io.Reader, id string) (Secret, error) {
	if err := job.CheckInvitationID("id", id); err != nil {
		return Secret{}, err
	}
	var seed [ed25519.SeedSize]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return Secret{}, fmt.Errorf("random bytes for an invitation: %w", err)
	}
	text := textPrefix + id + "_" + textEncoding.EncodeToString(seed[:])
	return Secret{id: id, text: text + "_" + checksum(text), key: ed25519.NewKeyFromSeed(seed[:])}, nil
}

// Parse reads a text. Its errors do not repeat it.
func Parse(text string) (Secret, error) {
	rest, found := strings.CutPrefix(text, textPrefix)
	if !found {
		return Secret{}, ErrNotInvitation
	}
	id, rest, found := strings.Cut(rest, "_")
	seedLen := textEncoding.EncodedLen(ed25519.SeedSize)
	if !found || job.CheckInvitationID("id", id) != nil || len(rest) != seedLen+1+crcDigits || rest[seedLen] != '_' {
		return Secret{}, ErrNotInvitation
	}
	if checksum(text[:len(text)-1-crcDigits]) != rest[seedLen+1:] {
		return Secret{}, ErrMistyped
	}
	seed, err := textEncoding.DecodeString(rest[:seedLen])
	if err != nil {
		return Secret{}, ErrNotInvitation
	}
	return Secret{id: id, text: text, key: ed25519.NewKeyFromSeed(seed)}, nil
}

// ReadFile reads the text in a file that others cannot read.
func ReadFile(path string) (Secret, error) {
	text, err := keyfile.Read(path, maxTextBytes)
	if err != nil {
		return Secret{}, err
	}
	s, err := Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// checksum detects slips of the hand. It protects nothing.
func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// ID returns the id of the invitation.
func (s Secret) ID() string { return s.id }

// Text returns the invitation itself, for its holder.
func (s Secret) Text() string { return s.text }

// PublicKey returns what the state has of the invitation.
func (s Secret) PublicKey() []byte { return s.key.Public().(ed25519.PublicKey) }

func (s Secret) String() string { return textPrefix + s.id + "_..." }

// GoString keeps the text out of %#v.
func (s Secret) GoString() string { return s.String() }
