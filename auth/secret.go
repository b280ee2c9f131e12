package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"tarry/job"
)

const (
	// textPrefix begins every token, so that scanners for leaked secrets find it.
	textPrefix  = "tarry_"
	secretBytes = 32
	crcBytes    = 8 // in hexadecimal digits

	// MaxTextBytes bounds the text of a token.
	MaxTextBytes = 200
)

// textEncoding refuses texts of which another one has the same bytes.
var textEncoding = base64.RawURLEncoding.Strict()

var (
	// ErrNotToken is returned for a text that is not a token of Tarry.
	ErrNotToken = errors.New("it is not a token of Tarry, which is tarry_ID_SECRET_CHECKSUM")
	// ErrMistyped is returned for a token whose checksum does not match.
	ErrMistyped = errors.New("its checksum does not match: it is mistyped or cut short")
)

// Secret is a token as its holder has it. Formatted, it shows only its id.
type Secret struct {
	id        string
	text      string
	sum       [sha256.Size]byte // of the text
	principal string            // see SecretPrincipal
}

// newSecret computes once what each call with the token needs.
func newSecret(id, text string) Secret {
	sum := sha256.Sum256([]byte(text))
	return Secret{id: id, text: text, sum: sum, principal: id + job.PrincipalSeparator + mark(sum[:])}
}

// Generate makes the token with an id from random bytes, which must be unpredictable.
func Generate(random io.Reader, id string) (Secret, error) {
	if err := job.CheckTokenID("id", id); err != nil {
		return Secret{}, err
	}
	var secret [secretBytes]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return Secret{}, fmt.Errorf("random bytes for a token: %w", err)
	}
	text := textPrefix + id + "_" + textEncoding.EncodeToString(secret[:])
	return newSecret(id, text+"_"+checksum(text)), nil
}

// Parse reads the text of a token. Its errors do not repeat the text.
func Parse(text string) (Secret, error) {
	rest, found := strings.CutPrefix(text, textPrefix)
	if !found || len(text) > MaxTextBytes {
		return Secret{}, ErrNotToken
	}
	id, rest, found := strings.Cut(rest, "_")
	secretLen := textEncoding.EncodedLen(secretBytes)
	if !found || job.CheckTokenID("id", id) != nil || len(rest) != secretLen+1+crcBytes || rest[secretLen] != '_' {
		return Secret{}, ErrNotToken
	}
	if checksum(text[:len(text)-1-crcBytes]) != rest[secretLen+1:] {
		return Secret{}, ErrMistyped
	}
	if _, err := textEncoding.DecodeString(rest[:secretLen]); err != nil {
		return Secret{}, ErrNotToken
	}
	return newSecret(id, text), nil
}

// checksum detects slips of the hand. It protects nothing.
func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// ID returns the id of the token.
func (s Secret) ID() string { return s.id }

// Text returns the token itself, for its holder.
func (s Secret) Text() string { return s.text }

// Hash returns what the state has of the token. 256 random bits need no slow hash.
func (s Secret) Hash() []byte { return s.sum[:] }

func (s Secret) String() string { return textPrefix + s.id + "_..." }

// GoString keeps the text out of %#v.
func (s Secret) GoString() string { return s.String() }

// matches reports, in constant time, whether a hash is that of the token.
func matches(hash, of []byte) bool {
	return len(hash) == sha256.Size && subtle.ConstantTimeCompare(hash, of) == 1
}
