package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
)

// The three parts of the keyspace of dead jobs by reason.
const (
	deadJobs   = 'j' // g j topic-number reason rank seq -> nothing
	deadCounts = 'n' // g n reason topic-number -> deadCount
	deadSizes  = 's' // g s topic-number size reason -> nothing
)

// deadGroup is the dead jobs of a topic with the same reason; with allTopics, of all topics.
type deadGroup struct {
	topic  uint32
	reason string // as job.DeadReason returns it
}

// deadCount is how many jobs a group has. One without jobs has no record.
type deadCount struct {
	jobs   uint64
	topics uint64 // only of allTopics: how many topics have such jobs
}

// size is the order of magnitude by which groups are found, the largest first: groups of
// twice the jobs have another one. So most changes of a count do not change it.
func (c deadCount) size() byte { return byte(64 - bits.Len64(c.jobs)) }

// deadReason returns the reason of the group that a job is in if it is dead.
func (rec *record) deadReason() string {
	return job.DeadReason(rec.status.reason, rec.status.lastError)
}

// appendReason encodes a reason so that none is the beginning of another.
func appendReason(b []byte, reason string) []byte {
	return append(append(b, byte(len(reason))), reason...) // job.DeadReasonBytes is less than 256
}

// decodeReason reads what appendReason has written, and returns the rest.
func decodeReason(b []byte) (reason, rest []byte, err error) {
	if len(b) == 0 || len(b) < 1+int(b[0]) || int(b[0]) > job.DeadReasonBytes {
		return nil, nil, errDeadKey
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], nil
}

var errDeadKey = errors.New("key of dead jobs by reason is malformed")

// appendJobsPrefix begins the keys of the jobs of a group.
func (g deadGroup) appendJobsPrefix(b []byte) []byte {
	b = append(b, spaceDead, deadJobs)
	return appendReason(binary.BigEndian.AppendUint32(b, g.topic), g.reason)
}

// appendJobKey encodes the place that a job of the group has in the list of dead jobs.
func (g deadGroup) appendJobKey(b []byte, p place) []byte {
	b = binary.BigEndian.AppendUint64(g.appendJobsPrefix(b), uint64(p.instant))
	return binary.BigEndian.AppendUint64(b, p.seq)
}

// decodeDeadJob reads the key of a job of a group. The reason is a part of the key.
func decodeDeadJob(key []byte) (topic uint32, reason []byte, p place, err error) {
	if len(key) < 2+4 || key[0] != spaceDead || key[1] != deadJobs {
		return 0, nil, place{}, fmt.Errorf("%x: %w", key, errDeadKey)
	}
	reason, rest, err := decodeReason(key[6:])
	if err != nil || len(rest) != 16 {
		return 0, nil, place{}, fmt.Errorf("%x: %w", key, errDeadKey)
	}
	p = place{instant: int64(binary.BigEndian.Uint64(rest)), seq: binary.BigEndian.Uint64(rest[8:])}
	return binary.BigEndian.Uint32(key[2:]), reason, p, nil
}

// appendDeadCountsPrefix begins the keys of the counts of a reason: that of all topics, and
// then those of each.
func appendDeadCountsPrefix(b []byte, reason string) []byte {
	return appendReason(append(b, spaceDead, deadCounts), reason)
}

func (g deadGroup) appendCountKey(b []byte) []byte {
	return binary.BigEndian.AppendUint32(appendDeadCountsPrefix(b, g.reason), g.topic)
}

func decodeDeadCountKey(key []byte) (topic uint32, reason []byte, err error) {
	if len(key) < 2 || key[0] != spaceDead || key[1] != deadCounts {
		return 0, nil, fmt.Errorf("%x: %w", key, errDeadKey)
	}
	reason, rest, err := decodeReason(key[2:])
	if err != nil || len(rest) != 4 {
		return 0, nil, fmt.Errorf("%x: %w", key, errDeadKey)
	}
	return binary.BigEndian.Uint32(rest), reason, nil
}

// appendSizesPrefix begins the keys of the groups of a topic by size.
func appendSizesPrefix(b []byte, topic uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, spaceDead, deadSizes), topic)
}

func (g deadGroup) appendSizeKey(b []byte, size byte) []byte {
	return appendReason(append(appendSizesPrefix(b, g.topic), size), g.reason)
}

func decodeDeadSizeKey(key []byte) (topic uint32, size byte, reason []byte, err error) {
	if len(key) < 2+4+1 || key[0] != spaceDead || key[1] != deadSizes {
		return 0, 0, nil, fmt.Errorf("%x: %w", key, errDeadKey)
	}
	reason, rest, err := decodeReason(key[7:])
	if err != nil || len(rest) != 0 {
		return 0, 0, nil, fmt.Errorf("%x: %w", key, errDeadKey)
	}
	return binary.BigEndian.Uint32(key[2:]), key[6], reason, nil
}

func (c deadCount) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, c.jobs)
	if c.topics != 0 {
		b = binary.BigEndian.AppendUint64(b, c.topics)
	}
	return b
}

func decodeDeadCount(b []byte) (c deadCount, err error) {
	switch len(b) {
	case 16:
		if c.topics = binary.BigEndian.Uint64(b[8:]); c.topics == 0 {
			return deadCount{}, errors.New("count of dead jobs of no topic")
		}
		fallthrough
	case 8:
		c.jobs = binary.BigEndian.Uint64(b)
	}
	if c.jobs == 0 {
		return deadCount{}, fmt.Errorf("count of dead jobs %x is malformed", b)
	}
	return c, nil
}

// readDeadCount reads the count of a group by its key; zero: it has no jobs.
func readDeadCount(r pebble.Reader, key []byte) (c deadCount, err error) {
	err = readKey(r, key, func(value []byte) (err error) {
		c, err = decodeDeadCount(value)
		return err
	})
	return c, err
}

// keyAfter returns the smallest key that begins with none of the keys up to prefix.
func keyAfter(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
