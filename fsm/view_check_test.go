package fsm

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// damage is a way to damage a state of two ready jobs in topic "t", the first of which has
// the id "x".
type damage struct {
	name string
	do   func(b *pebble.Batch) error
}

func damages() []damage {
	index := func(list listKind, p place) []byte { return listID{1, list}.appendKey(nil, p) }
	ready := index(listReady, place{instant: rigStart, seq: 1})
	sound := func() *topicRecord {
		rec := &topicRecord{number: 1, added: 2, urgent: 2}
		rec.counts[listReady] = 2
		rec.heads[listReady] = place{instant: rigStart, seq: 1}
		return rec
	}
	number := binary.BigEndian.AppendUint64(nil, 2)
	return []damage{
		{"job in no list", func(b *pebble.Batch) error { return b.Delete(ready, nil) }},
		{"job in two lists", func(b *pebble.Batch) error {
			return b.Set(index(listDead, place{seq: 1}), nil, nil)
		}},
		{"job twice in a list", func(b *pebble.Batch) error {
			return b.Set(index(listReady, place{instant: 5, seq: 1}), nil, nil)
		}},
		{"job delayed and ready", func(b *pebble.Batch) error {
			return b.Set(index(listDelayed, place{instant: rigStart, seq: 1}), make([]byte, 4), nil)
		}},
		{"entry of no job", func(b *pebble.Batch) error {
			return b.Set(index(listReady, place{seq: 9}), nil, nil)
		}},
		{"entry in a topic that is not there", func(b *pebble.Batch) error {
			return b.Set(listID{7, listReady}.appendKey(nil, place{instant: rigStart, seq: 1}), nil, nil)
		}},
		{"malformed entry", func(b *pebble.Batch) error { return b.Set([]byte{spaceIndex, 1}, nil, nil) }},
		{"job without records", func(b *pebble.Batch) error { return b.Delete(appendSeqKey(nil, spaceSpec, 1), nil) }},
		{"status without a job", func(b *pebble.Batch) error {
			return b.Set(appendSeqKey(nil, spaceStatus, 9), new(jobStatus).append(nil, statusVersion), nil)
		}},
		{"job moved to a topic that is not there", func(b *pebble.Batch) error {
			return b.Set(appendSeqKey(nil, spaceStatus, 1), (&jobStatus{dueMS: rigStart, revision: 2, movedTo: 7}).append(nil, statusVersion), nil)
		}},
		{"id without a job", func(b *pebble.Batch) error {
			return b.Set(appendNameKey(nil, spaceID, "ghost"), number, nil)
		}},
		{"job without its id", func(b *pebble.Batch) error { return b.Delete(appendNameKey(nil, spaceID, "x"), nil) }},
		{"id of another job", func(b *pebble.Batch) error {
			return b.Set(appendNameKey(nil, spaceID, "x"), number, nil)
		}},
		{"seq from the future", func(b *pebble.Batch) error {
			spec := jobSpec{topic: 1}
			if err := b.Set(index(listReady, place{seq: 99}), nil, nil); err != nil {
				return err
			}
			return b.Set(appendSeqKey(nil, spaceSpec, 99), spec.append(nil, nil), nil)
		}},
		{"wrong count", func(b *pebble.Batch) error {
			rec := sound()
			rec.counts[listReady] = 3
			return b.Set(appendNameKey(nil, spaceTopic, "t"), rec.append(nil), nil)
		}},
		{"wrong head", func(b *pebble.Batch) error {
			rec := sound()
			rec.heads[listReady] = place{instant: rigStart, seq: 2}
			return b.Set(appendNameKey(nil, spaceTopic, "t"), rec.append(nil), nil)
		}},
		{"wrong count of urgent jobs", func(b *pebble.Batch) error {
			rec := sound()
			rec.urgent = 1
			return b.Set(appendNameKey(nil, spaceTopic, "t"), rec.append(nil), nil)
		}},
		{"pause without a length", func(b *pebble.Batch) error {
			rec := sound()
			rec.pausedUntil = rigStart + 1
			return b.Set(appendNameKey(nil, spaceTopic, "t"), rec.append(nil), nil)
		}},
		{"ended job without a retention", func(b *pebble.Batch) error {
			return b.Set(appendSeqKey(nil, spaceStatus, 1), (&jobStatus{phase: phaseFinished}).append(nil, statusVersion), nil)
		}},
		{"damaged history", func(b *pebble.Batch) error {
			status := newStatus(&jobSpec{priority: 0, dueMS: rigStart, createdMS: rigStart})
			status.history = "\x01"
			return b.Set(appendSeqKey(nil, spaceStatus, 1), status.append(nil, statusVersion), nil)
		}},
		{"topic without a number", func(b *pebble.Batch) error { return b.Delete(appendNumberKey(nil, 1), nil) }},
		{"number without a topic", func(b *pebble.Batch) error { return b.Set(appendNumberKey(nil, 5), []byte("u"), nil) }},
		{"unknown keyspace", func(b *pebble.Batch) error { return b.Set([]byte{255, 1}, nil, nil) }},
	}
}

// Check finds each way to damage a state.
func TestCheckFindsDamage(t *testing.T) {
	for _, c := range damages() {
		t.Run(c.name, func(t *testing.T) {
			m, err := Open(rigDir, Options{FS: vfs.NewMem()})
			require.NoError(t, err)
			data := encodeEntry(t, rigStart, opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opAdd(&jobpb.Add{Topic: "t"}))
			_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: data}}, false)
			require.NoError(t, err)
			sound := m.View()
			require.NoError(t, sound.Check())
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, c.do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, v.Check(), "inconsistent")
			require.NoError(t, v.Close())
			require.NoError(t, m.Close())
		})
	}
}

// The header index is checked like the lists: topic "t" indexes "h", job 1 has it and
// job 2 does not.
func TestCheckFindsDamageToTheHeaderIndex(t *testing.T) {
	entry := func(name, value string, seq uint64) []byte { return appendHeaderKey(nil, name, value, seq) }
	count := func(name string, n uint32) func(b *pebble.Batch) error {
		return func(b *pebble.Batch) error {
			return b.Set(appendHeaderNameKey(nil, name), binary.BigEndian.AppendUint32(nil, n), nil)
		}
	}
	walk := func(w headerWalk) func(b *pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Set(keyHeaderWalk, w.append(nil), nil) }
	}
	for name, do := range map[string]func(b *pebble.Batch) error{
		"job without its entry":               func(b *pebble.Batch) error { return b.Delete(entry("h", "1", 1), nil) },
		"entry of another value":              func(b *pebble.Batch) error { return b.Set(entry("h", "2", 1), nil, nil) },
		"entry of a header that is not there": func(b *pebble.Batch) error { return b.Set(entry("h", "1", 2), nil, nil) },
		"entry of a header not indexed":       func(b *pebble.Batch) error { return b.Set(entry("g", "1", 1), nil, nil) },
		"entry of no job":                     func(b *pebble.Batch) error { return b.Set(entry("h", "1", 9), nil, nil) },
		"entry with a value":                  func(b *pebble.Batch) error { return b.Set(entry("h", "1", 1), []byte{1}, nil) },
		"malformed entry":                     func(b *pebble.Batch) error { return b.Set([]byte{spaceHeader, headerEntries, 1}, nil, nil) },
		"malformed key":                       func(b *pebble.Batch) error { return b.Set([]byte{spaceHeader}, nil, nil) },
		"wrong count of topics":               count("h", 2),
		"count of a header not indexed":       count("g", 1),
		"header without its count":            func(b *pebble.Batch) error { return b.Delete(appendHeaderNameKey(nil, "h"), nil) },
		"walk without a header":               walk(headerWalk{limit: 2, next: 1}),
		"walk beyond the jobs":                walk(headerWalk{limit: 99, next: 1, names: []walkedHeader{{"h", true}}}),
		"walk beyond its end":                 walk(headerWalk{limit: 2, next: 3, names: []walkedHeader{{"h", true}}}),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(rigDir, Options{FS: vfs.NewMem()})
			require.NoError(t, err)
			options := &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "g", Value: "1"}, {Name: "h", Value: "1"}}}
			data := encodeEntry(t, rigStart, opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{IndexHeaders: []string{"h"}}}),
				opAdd(&jobpb.Add{Topic: "t", Options: options, TtrMs: 1}), opAdd(&jobpb.Add{Topic: "t", TtrMs: 1}))
			_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: data}}, false)
			require.NoError(t, err)
			sound := m.View()
			require.NoError(t, sound.Check())
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, v.Check(), "inconsistent")
			require.NoError(t, v.Close())
			require.NoError(t, m.Close())
		})
	}
}
