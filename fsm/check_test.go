package fsm

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// damage is a way to damage a state of two ready jobs in topic "t", the first of which has
// the id "x".
type damage struct {
	name string
	do   func(b *pebble.Batch) error
}

func damages() []damage {
	index := func(list record.List, p record.Place) []byte {
		return record.ListID{Topic: 1, List: list}.AppendKey(nil, p)
	}
	ready := index(record.ListReady, record.Place{Instant: rigStart, Seq: 1})
	sound := func() *record.Topic {
		rec := &record.Topic{Number: 1, Added: 2, Urgent: 2}
		rec.Counts[record.ListReady] = 2
		rec.Heads[record.ListReady] = record.Place{Instant: rigStart, Seq: 1}
		return rec
	}
	number := binary.BigEndian.AppendUint64(nil, 2)
	return []damage{
		{"job in no list", func(b *pebble.Batch) error { return b.Delete(ready, nil) }},
		{"job in two lists", func(b *pebble.Batch) error {
			return b.Set(index(record.ListDead, record.Place{Seq: 1}), nil, nil)
		}},
		{"job twice in a list", func(b *pebble.Batch) error {
			return b.Set(index(record.ListReady, record.Place{Instant: 5, Seq: 1}), nil, nil)
		}},
		{"job delayed and ready", func(b *pebble.Batch) error {
			return b.Set(index(record.ListDelayed, record.Place{Instant: rigStart, Seq: 1}), make([]byte, 4), nil)
		}},
		{"entry of no job", func(b *pebble.Batch) error {
			return b.Set(index(record.ListReady, record.Place{Seq: 9}), nil, nil)
		}},
		{"entry in a topic that is not there", func(b *pebble.Batch) error {
			return b.Set(record.ListID{Topic: 7, List: record.ListReady}.AppendKey(nil, record.Place{Instant: rigStart, Seq: 1}), nil, nil)
		}},
		{"malformed entry", func(b *pebble.Batch) error { return b.Set([]byte{record.SpaceIndex, 1}, nil, nil) }},
		{"job without records", func(b *pebble.Batch) error { return b.Delete(record.AppendSeqKey(nil, record.SpaceSpec, 1), nil) }},
		{"status without a job", func(b *pebble.Batch) error {
			return b.Set(record.AppendSeqKey(nil, record.SpaceStatus, 9), new(record.Status).Append(nil, record.StatusVersion), nil)
		}},
		{"job moved to a topic that is not there", func(b *pebble.Batch) error {
			return b.Set(record.AppendSeqKey(nil, record.SpaceStatus, 1), (&record.Status{DueMS: rigStart, Revision: 2, MovedTo: 7}).Append(nil, record.StatusVersion), nil)
		}},
		{"id without a job", func(b *pebble.Batch) error {
			return b.Set(record.AppendNameKey(nil, record.SpaceID, "ghost"), number, nil)
		}},
		{"job without its id", func(b *pebble.Batch) error { return b.Delete(record.AppendNameKey(nil, record.SpaceID, "x"), nil) }},
		{"id of another job", func(b *pebble.Batch) error {
			return b.Set(record.AppendNameKey(nil, record.SpaceID, "x"), number, nil)
		}},
		{"seq from the future", func(b *pebble.Batch) error {
			spec := record.Spec{Topic: 1}
			if err := b.Set(index(record.ListReady, record.Place{Seq: 99}), nil, nil); err != nil {
				return err
			}
			return b.Set(record.AppendSeqKey(nil, record.SpaceSpec, 99), spec.Append(nil, nil), nil)
		}},
		{"wrong count", func(b *pebble.Batch) error {
			rec := sound()
			rec.Counts[record.ListReady] = 3
			return b.Set(record.AppendNameKey(nil, record.SpaceTopic, "t"), rec.Append(nil), nil)
		}},
		{"wrong head", func(b *pebble.Batch) error {
			rec := sound()
			rec.Heads[record.ListReady] = record.Place{Instant: rigStart, Seq: 2}
			return b.Set(record.AppendNameKey(nil, record.SpaceTopic, "t"), rec.Append(nil), nil)
		}},
		{"wrong count of urgent jobs", func(b *pebble.Batch) error {
			rec := sound()
			rec.Urgent = 1
			return b.Set(record.AppendNameKey(nil, record.SpaceTopic, "t"), rec.Append(nil), nil)
		}},
		{"pause without a length", func(b *pebble.Batch) error {
			rec := sound()
			rec.PausedUntil = rigStart + 1
			return b.Set(record.AppendNameKey(nil, record.SpaceTopic, "t"), rec.Append(nil), nil)
		}},
		{"ended job without a retention", func(b *pebble.Batch) error {
			return b.Set(record.AppendSeqKey(nil, record.SpaceStatus, 1), (&record.Status{Phase: record.PhaseFinished}).Append(nil, record.StatusVersion), nil)
		}},
		{"damaged history", func(b *pebble.Batch) error {
			status := record.NewStatus(&record.Spec{Priority: 0, DueMS: rigStart, CreatedMS: rigStart})
			status.History = "\x01"
			return b.Set(record.AppendSeqKey(nil, record.SpaceStatus, 1), status.Append(nil, record.StatusVersion), nil)
		}},
		{"topic without a number", func(b *pebble.Batch) error { return b.Delete(record.AppendNumberKey(nil, 1), nil) }},
		{"number without a topic", func(b *pebble.Batch) error { return b.Set(record.AppendNumberKey(nil, 5), []byte("u"), nil) }},
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
			require.NoError(t, check.Records(sound, nil))
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, c.do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, check.Records(v, nil), "inconsistent")
			require.NoError(t, v.Close())
			require.NoError(t, m.Close())
		})
	}
}

// The header index is checked like the lists: topic "t" indexes "h", job 1 has it and
// job 2 does not.
func TestCheckFindsDamageToTheHeaderIndex(t *testing.T) {
	entry := func(name, value string, seq uint64) []byte { return record.AppendHeaderKey(nil, name, value, seq) }
	count := func(name string, n uint32) func(b *pebble.Batch) error {
		return func(b *pebble.Batch) error {
			return b.Set(record.AppendHeaderNameKey(nil, name), binary.BigEndian.AppendUint32(nil, n), nil)
		}
	}
	walk := func(w record.HeaderWalk) func(b *pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Set(record.KeyHeaderWalk, w.Append(nil), nil) }
	}
	for name, do := range map[string]func(b *pebble.Batch) error{
		"job without its entry":               func(b *pebble.Batch) error { return b.Delete(entry("h", "1", 1), nil) },
		"entry of another value":              func(b *pebble.Batch) error { return b.Set(entry("h", "2", 1), nil, nil) },
		"entry of a header that is not there": func(b *pebble.Batch) error { return b.Set(entry("h", "1", 2), nil, nil) },
		"entry of a header not indexed":       func(b *pebble.Batch) error { return b.Set(entry("g", "1", 1), nil, nil) },
		"entry of no job":                     func(b *pebble.Batch) error { return b.Set(entry("h", "1", 9), nil, nil) },
		"entry with a value":                  func(b *pebble.Batch) error { return b.Set(entry("h", "1", 1), []byte{1}, nil) },
		"malformed entry": func(b *pebble.Batch) error {
			return b.Set([]byte{record.SpaceHeader, record.HeaderEntries, 1}, nil, nil)
		},
		"malformed key":                 func(b *pebble.Batch) error { return b.Set([]byte{record.SpaceHeader}, nil, nil) },
		"wrong count of topics":         count("h", 2),
		"count of a header not indexed": count("g", 1),
		"header without its count":      func(b *pebble.Batch) error { return b.Delete(record.AppendHeaderNameKey(nil, "h"), nil) },
		"walk without a header":         walk(record.HeaderWalk{Limit: 2, Next: 1}),
		"walk beyond the jobs":          walk(record.HeaderWalk{Limit: 99, Next: 1, Names: []record.WalkedHeader{{Name: "h", Added: true}}}),
		"walk beyond its end":           walk(record.HeaderWalk{Limit: 2, Next: 3, Names: []record.WalkedHeader{{Name: "h", Added: true}}}),
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
			require.NoError(t, check.Records(sound, nil))
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, check.Records(v, nil), "inconsistent")
			require.NoError(t, v.Close())
			require.NoError(t, m.Close())
		})
	}
}
