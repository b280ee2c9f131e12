package fsm

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// settingsVersion is the first byte of a settings record.
const settingsVersion = 1

// sameSettings reports whether two settings have the same record.
func sameSettings(a, b *jobpb.TopicSettings) (bool, error) {
	x, err := encodeSettings(a)
	if err != nil {
		return false, err
	}
	y, err := encodeSettings(b)
	return string(x) == string(y), err
}

func encodeSettings(s *jobpb.TopicSettings) ([]byte, error) {
	b, err := s.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	return append([]byte{settingsVersion}, b...), nil
}

func decodeSettings(b []byte) (*jobpb.TopicSettings, error) {
	if err := checkVersion("settings record", b, settingsVersion); err != nil {
		return nil, err
	}
	s := new(jobpb.TopicSettings)
	if err := s.UnmarshalVTUnsafe(bytes.Clone(b[1:])); err != nil {
		return nil, fmt.Errorf("settings record does not decode: %w", err)
	}
	if s.Revision == 0 {
		return nil, errors.New("settings record has revision 0")
	}
	return s, nil
}

// readSettings reads the settings of a topic; nil: none.
func readSettings(r pebble.Reader, name string) (s *jobpb.TopicSettings, err error) {
	err = readKey(r, appendNameKey(nil, spaceSettings, name), func(value []byte) error {
		s, err = decodeSettings(value)
		return err
	})
	return s, err
}

// readAllSettings reads the settings of all topics.
func readAllSettings(r pebble.Reader) (map[string]*jobpb.TopicSettings, error) {
	all := make(map[string]*jobpb.TopicSettings)
	err := scan(r, []byte{spaceSettings}, []byte{spaceSettings + 1}, func(key, value []byte) (err error) {
		name := string(key[1:])
		if all[name], err = decodeSettings(value); err != nil {
			return fmt.Errorf("settings of topic %q: %w", name, err)
		}
		return nil
	})
	return all, err
}
