package record

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// URLs of jobs. A job may have a push_url where its topic's push has job_urls. That is
// checked when the job is added, changed or moved to another topic. The topic's settings
// may change later: then the leader posts such a job nowhere, and says why.

// CheckPushURL returns an error unless a job with that push_url, or none, may come into a
// topic with the settings.
func CheckPushURL(topic string, s *jobpb.TopicSettings, url string) error {
	push := s.GetPush()
	switch {
	case url == "" && (push == nil || push.Url != ""):
		return nil
	case url == "":
		return job.Invalid("push_url", "is missing; the push of topic %.40q has no url, so each of its jobs needs one", topic)
	case push == nil:
		return job.Invalid("push_url", "is not permitted in topic %.40q, which has no push; its settings need push with job_urls", topic)
	case !push.JobUrls:
		return job.Invalid("push_url", "is not permitted in topic %.40q, whose push does not have job_urls", topic)
	}
	return nil
}

// SettingsVersion is the first byte of a settings record.
const SettingsVersion = 1

// SameSettings reports whether two settings have the same record.
func SameSettings(a, b *jobpb.TopicSettings) (bool, error) {
	x, err := EncodeSettings(a)
	if err != nil {
		return false, err
	}
	y, err := EncodeSettings(b)
	return string(x) == string(y), err
}

func EncodeSettings(s *jobpb.TopicSettings) ([]byte, error) {
	b, err := s.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	return append([]byte{SettingsVersion}, b...), nil
}

func DecodeSettings(b []byte) (*jobpb.TopicSettings, error) {
	if err := checkVersion("settings record", b, SettingsVersion); err != nil {
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

// ReadSettings reads the settings of a topic; nil: none.
func ReadSettings(r pebble.Reader, name string) (s *jobpb.TopicSettings, err error) {
	err = ReadKey(r, AppendNameKey(nil, SpaceSettings, name), func(value []byte) error {
		s, err = DecodeSettings(value)
		return err
	})
	return s, err
}

// ReadAllSettings reads the settings of all topics.
func ReadAllSettings(r pebble.Reader) (map[string]*jobpb.TopicSettings, error) {
	all := make(map[string]*jobpb.TopicSettings)
	err := Scan(r, []byte{SpaceSettings}, []byte{SpaceSettings + 1}, func(key, value []byte) (err error) {
		name := string(key[1:])
		if all[name], err = DecodeSettings(value); err != nil {
			return fmt.Errorf("settings of topic %q: %w", name, err)
		}
		return nil
	})
	return all, err
}
