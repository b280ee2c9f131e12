package secretkeys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	keyBytes   = 32
	idBytes    = 8
	nonceBytes = 12
	tagBytes   = 16

	// Overhead is how many bytes longer a secret is when it is sealed.
	Overhead = idBytes + nonceBytes + tagBytes
)

// The purposes of what is derived from a key. They never change: what was sealed must open.
const (
	purposeID    = "tarry secret key id 1"
	purposeSeal  = "tarry secret seal 1"
	purposeNonce = "tarry secret nonce 1"
	purposePush  = "tarry push secret 1\x00"
)

// Key is one key. Formatted, it shows only its id.
type Key struct{ bytes [keyBytes]byte }

// NewKey makes a key.
func NewKey() Key {
	var k Key
	rand.Read(k.bytes[:]) // never fails
	return k
}

// Text returns the key itself, as a file has it.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k.bytes[:]) }

func (k Key) String() string { return "key " + k.ID() }

// GoString keeps the key out of %#v.
func (k Key) GoString() string { return k.String() }

// ID returns the name of the key, which may be shown.
func (k Key) ID() string { return hex.EncodeToString(k.derive(purposeID, idBytes)) }

func (k Key) derive(purpose string, n int) []byte {
	b, err := hkdf.Key(sha256.New, k.bytes[:], nil, purpose, n)
	if err != nil {
		panic(err) // of a length that is too large
	}
	return b
}

func parseKey(text string) (k Key, err error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return k, errors.New("it is not base64") // the cause would show a part of it
	}
	if len(b) != keyBytes {
		return k, fmt.Errorf("the key has %d bytes; it takes %d", len(b), keyBytes)
	}
	copy(k.bytes[:], b)
	return k, nil
}

// sealer is a key in use.
type sealer struct {
	id    [idBytes]byte
	nonce []byte
	aead  cipher.AEAD
}

func newSealer(k Key) *sealer {
	block, err := aes.NewCipher(k.derive(purposeSeal, keyBytes))
	if err != nil {
		panic(err) // of another length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // of a block of another size
	}
	return &sealer{id: [idBytes]byte(k.derive(purposeID, idBytes)), nonce: k.derive(purposeNonce, keyBytes), aead: aead}
}

func (s *sealer) seal(topic, secret string) []byte {
	about := []byte(purposePush + topic)
	mac := hmac.New(sha256.New, s.nonce)
	mac.Write(about)
	mac.Write([]byte{0}) // no topic has one
	mac.Write([]byte(secret))
	nonce := mac.Sum(nil)[:nonceBytes]
	sealed := append(append(make([]byte, 0, Overhead+len(secret)), s.id[:]...), nonce...)
	return s.aead.Seal(sealed, nonce, []byte(secret), about)
}

func (s *sealer) open(topic string, sealed []byte) (string, error) {
	plain, err := s.aead.Open(nil, sealed[idBytes:idBytes+nonceBytes], sealed[idBytes+nonceBytes:], []byte(purposePush+topic))
	return string(plain), err
}
