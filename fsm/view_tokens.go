package fsm

import (
	"github.com/cockroachdb/pebble/v2"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// Token returns a token of a client by its id; nil: there is none. The info does not count
// the tokens.
func (v *View) Token(id string) (t *jobpb.Token, info *jobpb.AuthInfo, err error) {
	err = v.read(func(r pebble.Reader) (err error) {
		if info, err = readAuthInfo(r); err != nil || id == "" {
			return err
		}
		return readKey(r, appendNameKey(nil, spaceToken, id), func(value []byte) error {
			t, err = decodeToken(id, value)
			return err
		})
	})
	return t, info, err
}

// Tokens returns up to max tokens in the order of their ids, starting after the id given.
// The page ends early once it has more than job.MaxTokenListBytes. The info does not count
// the tokens.
func (v *View) Tokens(after string, max int) (list []*jobpb.Token, info *jobpb.AuthInfo, err error) {
	lower := append(appendNameKey(nil, spaceToken, after), 0) // also behind keyAuth
	size := 0
	err = v.read(func(r pebble.Reader) (err error) {
		if info, err = readAuthInfo(r); err != nil || max <= 0 {
			return err
		}
		return v.scan(r, lower, []byte{spaceToken + 1}, func(key, value []byte) error {
			t, err := decodeToken(string(key[1:]), value)
			if err != nil {
				return err
			}
			list = append(list, t)
			if size += len(value); len(list) == max || size > job.MaxTokenListBytes {
				return errEnough
			}
			return nil
		})
	})
	return list, info, err
}

// Auth returns the settings for all tokens, and counts these.
func (v *View) Auth() (info *jobpb.AuthInfo, err error) {
	err = v.read(func(r pebble.Reader) (err error) {
		if info, err = readAuthInfo(r); err != nil {
			return err
		}
		return v.scan(r, append(keyAuth[:1:1], 0), []byte{spaceToken + 1}, func([]byte, []byte) error {
			info.Tokens++
			return nil
		})
	})
	return info, err
}

// readAuthInfo reads what there is beside the tokens.
func readAuthInfo(r pebble.Reader) (*jobpb.AuthInfo, error) {
	s := auth.NewState(0, false, nil, nil)
	err := readKey(r, keyAuth, func(value []byte) (err error) { s, err = decodeAuth(value, nil); return err })
	if err != nil {
		return nil, err
	}
	return &jobpb.AuthInfo{Revision: s.Revision, Bootstrapped: s.Bootstrapped, Settings: s.Settings}, nil
}
