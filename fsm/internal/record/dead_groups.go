package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
)

// EachDeadJob calls f for the places of the jobs of a group that are not before from, until
// it returns ErrEnough.
func EachDeadJob(r pebble.Reader, g DeadGroup, from Place, f func(Place) error) error {
	err := Scan(r, g.AppendJobKey(nil, from), KeyAfter(g.appendJobsPrefix(nil)), func(key, _ []byte) error {
		_, _, p, err := DecodeDeadJob(key)
		if err != nil {
			return err
		}
		return f(p)
	})
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// The three parts of the keyspace of dead jobs by reason.
const (
	DeadJobs   = 'j' // g j topic-number reason rank seq -> nothing
	DeadCounts = 'n' // g n reason topic-number -> DeadCount
	DeadSizes  = 's' // g s topic-number size reason -> nothing
)

// DeadGroup is the dead jobs of a topic with the same reason; with AllTopics, of all topics.
type DeadGroup struct {
	Topic  uint32
	Reason string // as job.DeadReason returns it
}

// DeadCount is how many jobs a group has. One without jobs has no record.
type DeadCount struct {
	Jobs   uint64
	Topics uint64 // only of AllTopics: how many topics have such jobs
}

// Size is the order of magnitude by which groups are found, the largest first: groups of
// twice the jobs have another one. So most changes of a count do not change it.
func (c DeadCount) Size() byte { return byte(64 - bits.Len64(c.Jobs)) }

// DeadReason returns the reason of the group that a job is in if it is dead.
func (rec *Job) DeadReason() string {
	return job.DeadReason(rec.Status.Reason, rec.Status.LastError)
}

// appendReason encodes a reason so that none is the beginning of another.
func appendReason(b []byte, reason string) []byte {
	return append(append(b, byte(len(reason))), reason...) // job.DeadReasonBytes is less than 256
}

// decodeReason reads what appendReason has written, and returns the rest.
func decodeReason(b []byte) (reason, rest []byte, err error) {
	if len(b) == 0 || len(b) < 1+int(b[0]) || int(b[0]) > job.DeadReasonBytes {
		return nil, nil, ErrDeadKey
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], nil
}

var ErrDeadKey = errors.New("key of dead jobs by reason is malformed")

// appendJobsPrefix begins the keys of the jobs of a group.
func (g DeadGroup) appendJobsPrefix(b []byte) []byte {
	b = append(b, SpaceDead, DeadJobs)
	return appendReason(binary.BigEndian.AppendUint32(b, g.Topic), g.Reason)
}

// AppendJobKey encodes the place that a job of the group has in the list of dead jobs.
func (g DeadGroup) AppendJobKey(b []byte, p Place) []byte {
	b = binary.BigEndian.AppendUint64(g.appendJobsPrefix(b), uint64(p.Instant))
	return binary.BigEndian.AppendUint64(b, p.Seq)
}

// DecodeDeadJob reads the key of a job of a group. The reason is a part of the key.
func DecodeDeadJob(key []byte) (topic uint32, reason []byte, p Place, err error) {
	if len(key) < 2+4 || key[0] != SpaceDead || key[1] != DeadJobs {
		return 0, nil, Place{}, fmt.Errorf("%x: %w", key, ErrDeadKey)
	}
	reason, rest, err := decodeReason(key[6:])
	if err != nil || len(rest) != 16 {
		return 0, nil, Place{}, fmt.Errorf("%x: %w", key, ErrDeadKey)
	}
	p = Place{Instant: int64(binary.BigEndian.Uint64(rest)), Seq: binary.BigEndian.Uint64(rest[8:])}
	return binary.BigEndian.Uint32(key[2:]), reason, p, nil
}

// AppendDeadCountsPrefix begins the keys of the counts of a reason: that of all topics, and
// then those of each.
func AppendDeadCountsPrefix(b []byte, reason string) []byte {
	return appendReason(append(b, SpaceDead, DeadCounts), reason)
}

func (g DeadGroup) AppendCountKey(b []byte) []byte {
	return binary.BigEndian.AppendUint32(AppendDeadCountsPrefix(b, g.Reason), g.Topic)
}

func DecodeDeadCountKey(key []byte) (topic uint32, reason []byte, err error) {
	if len(key) < 2 || key[0] != SpaceDead || key[1] != DeadCounts {
		return 0, nil, fmt.Errorf("%x: %w", key, ErrDeadKey)
	}
	reason, rest, err := decodeReason(key[2:])
	if err != nil || len(rest) != 4 {
		return 0, nil, fmt.Errorf("%x: %w", key, ErrDeadKey)
	}
	return binary.BigEndian.Uint32(rest), reason, nil
}

// AppendSizesPrefix begins the keys of the groups of a topic by size.
func AppendSizesPrefix(b []byte, topic uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, SpaceDead, DeadSizes), topic)
}

func (g DeadGroup) AppendSizeKey(b []byte, size byte) []byte {
	return appendReason(append(AppendSizesPrefix(b, g.Topic), size), g.Reason)
}

func DecodeDeadSizeKey(key []byte) (topic uint32, size byte, reason []byte, err error) {
	if len(key) < 2+4+1 || key[0] != SpaceDead || key[1] != DeadSizes {
		return 0, 0, nil, fmt.Errorf("%x: %w", key, ErrDeadKey)
	}
	reason, rest, err := decodeReason(key[7:])
	if err != nil || len(rest) != 0 {
		return 0, 0, nil, fmt.Errorf("%x: %w", key, ErrDeadKey)
	}
	return binary.BigEndian.Uint32(key[2:]), key[6], reason, nil
}

func (c DeadCount) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, c.Jobs)
	if c.Topics != 0 {
		b = binary.BigEndian.AppendUint64(b, c.Topics)
	}
	return b
}

func DecodeDeadCount(b []byte) (c DeadCount, err error) {
	switch len(b) {
	case 16:
		if c.Topics = binary.BigEndian.Uint64(b[8:]); c.Topics == 0 {
			return DeadCount{}, errors.New("count of dead jobs of no topic")
		}
		fallthrough
	case 8:
		c.Jobs = binary.BigEndian.Uint64(b)
	}
	if c.Jobs == 0 {
		return DeadCount{}, fmt.Errorf("count of dead jobs %x is malformed", b)
	}
	return c, nil
}

// ReadDeadCount reads the count of a group by its key; zero: it has no jobs.
func ReadDeadCount(r pebble.Reader, key []byte) (c DeadCount, err error) {
	err = ReadKey(r, key, func(value []byte) (err error) {
		c, err = DecodeDeadCount(value)
		return err
	})
	return c, err
}

// KeyAfter returns the smallest key that begins with none of the keys up to prefix.
func KeyAfter(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
