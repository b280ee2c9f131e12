package gossipkeys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// KeyBytes is the length of a key: AES-256.
const KeyBytes = 32

// Key encrypts gossip. Its String is the fingerprint, so that a key that is formatted by
// mistake is not revealed.
type Key [KeyBytes]byte

// New returns a random key.
func New() (k Key) {
	rand.Read(k[:]) // never fails
	return k
}

// Secret returns the key itself, as it stands in a file.
func (k Key) Secret() string { return base64.StdEncoding.EncodeToString(k[:]) }

// fingerprintBytes tells the keys of one ring apart. It is far too short to be of use for
// finding a random key.
const fingerprintBytes = 8

// Fingerprint names the key without revealing it.
func (k Key) Fingerprint() string {
	sum := sha256.Sum256(append([]byte("tarry gossip key "), k[:]...))
	return hex.EncodeToString(sum[:fingerprintBytes])
}

func (k Key) String() string { return k.Fingerprint() }

// Format implements fmt.Formatter: no verb reveals the key.
func (k Key) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprint(f, k.Fingerprint()) // fmt keeps what it prints in memory
}

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.Fingerprint()) }

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.Fingerprint()), nil }

// parseKey reads what Secret returns. Its errors do not quote the text, which may be most
// of a key.
func parseKey(text []byte) (k Key, err error) {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil {
		return k, fmt.Errorf("it is not base64")
	}
	if len(b) != KeyBytes {
		return k, fmt.Errorf("the key has %d bytes; it takes %d", len(b), KeyBytes)
	}
	return Key(b), nil
}
