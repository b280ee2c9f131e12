package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/auth"
	"tarry/job/jobpb"
)

// A token is a version byte and a message. What is there beside the tokens is one record: a
// version byte, the auth revision, whether there ever was a token, and the settings.
const (
	authVersion   = 1
	authHeaderLen = 1 + 8 + 1
)

// KeyAuth is that of the record beside the tokens. No token has an empty id.
var KeyAuth = []byte{SpaceToken}

func EncodeToken(t *jobpb.Token) ([]byte, error) {
	b, err := t.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode a token: %w", err)
	}
	return append([]byte{authVersion}, b...), nil
}

// DecodeToken does not keep value.
func DecodeToken(id string, value []byte) (*jobpb.Token, error) {
	if err := checkVersion("token record", value, authVersion); err != nil {
		return nil, err
	}
	t := new(jobpb.Token)
	if err := t.UnmarshalVTUnsafe(bytes.Clone(value[1:])); err != nil {
		return nil, fmt.Errorf("token record: %w", err)
	}
	if t.Id != id || t.Revision == 0 || len(t.Hash) == 0 {
		return nil, fmt.Errorf("the record of token %q is of %q, with revision %d and a hash of %d bytes", id, t.Id, t.Revision, len(t.Hash))
	}
	return t, nil
}

func EncodeAuth(s *auth.State) ([]byte, error) {
	settings, err := s.Settings.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the settings of tokens: %w", err)
	}
	b := binary.BigEndian.AppendUint64([]byte{authVersion}, s.Revision)
	bootstrapped := byte(0)
	if s.Bootstrapped {
		bootstrapped = 1
	}
	return append(append(b, bootstrapped), settings...), nil
}

func DecodeAuth(value []byte, tokens map[string]*auth.Token) (*auth.State, error) {
	if err := checkVersion("record of auth", value, authVersion); err != nil {
		return nil, err
	}
	if len(value) < authHeaderLen {
		return nil, fmt.Errorf("record of auth: %w", ErrShort)
	}
	settings := new(jobpb.AuthSettings)
	if err := settings.UnmarshalVTUnsafe(bytes.Clone(value[authHeaderLen:])); err != nil {
		return nil, fmt.Errorf("record of auth: %w", err)
	}
	return auth.NewState(binary.BigEndian.Uint64(value[1:]), value[9] == 1, settings, tokens), nil
}

// ReadAuth reads all tokens and the settings.
func ReadAuth(r pebble.Reader) (s *auth.State, err error) {
	tokens := make(map[string]*auth.Token)
	err = Scan(r, []byte{SpaceToken}, []byte{SpaceToken + 1}, func(key, value []byte) (err error) {
		if len(key) == len(KeyAuth) { // the first
			s, err = DecodeAuth(value, tokens)
			return err
		}
		id := string(key[1:])
		t, err := DecodeToken(id, value)
		if err == nil {
			tokens[id] = auth.NewToken(t)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case s == nil && len(tokens) > 0:
		return nil, errors.New("there are tokens, but no record of their settings")
	case s == nil:
		s = auth.NewState(0, false, nil, tokens)
	}
	for _, t := range tokens {
		if t.Revision > s.Revision {
			return nil, fmt.Errorf("token %q has revision %d; the last one given is %d", t.Id, t.Revision, s.Revision)
		}
	}
	return s, nil
}
