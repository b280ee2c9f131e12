package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/configlog"
	"tarry/job/jobpb"
)

// MaxClock returns the largest clock by which the state may have acted.
func (m *Meta) MaxClock() int64 { return max(m.State.ClockMS, m.Reset.Ahead) }

// FormatVersion is the version of the whole store's layout. A store of another version is
// refused.
const FormatVersion = 10

// Names in the meta keyspace. They are on disk.
var (
	KeyState         = []byte{SpaceMeta, 'a'} // rewritten by every batch
	KeyConfiguration = []byte{SpaceMeta, 'c'}
	KeyClock         = []byte{SpaceMeta, 'k'}
	KeyConfigGroup   = []byte{SpaceMeta, 'f'}
	KeyConfigLog     = []byte{SpaceMeta, 'l'}
	KeySharding      = []byte{SpaceMeta, 'g'}
	KeyHeaderWalk    = []byte{SpaceMeta, 'h'}
	KeyCluster       = []byte{SpaceMeta, 'i'}
	KeyPending       = []byte{SpaceMeta, 'p'}
	KeyReplaced      = []byte{SpaceMeta, 'r'}
	KeyStandby       = []byte{SpaceMeta, 's'}
	KeyTaken         = []byte{SpaceMeta, 't'} // of one node alone: releases that do not know it keep it
	KeyUpload        = []byte{SpaceMeta, 'u'}
	KeyVersion       = []byte{SpaceMeta, 'v'} // read before all others
	KeyDurable       = []byte{SpaceMeta, 'w'}
)

// Applied is the point that a state has reached.
type Applied struct {
	Index, Term uint64
	ClockMS     int64  // the FSM clock, Unix milliseconds
	ClockEpoch  uint64 // how often it was set back
	// Configuration is the Raft configuration, opaque here; nil before the first.
	// ConfigurationIndex is the index of its entry.
	Configuration      []byte
	ConfigurationIndex uint64
}

// State is rewritten by every batch: the index of its last entry, and the counters
// that are part of the state.
type State struct {
	Index, Term uint64
	ClockMS     int64
	NextSeq     uint64
	LastTopic   uint32 // the number of the newest topic
	Topics      uint32
	GatheredDue uint32            // changes of due counts that KeyDueChanges has been given
	Counts      [ListCount]uint64 // places by list, of all topics together
	DeadReasons uint64            // that dead jobs have
	RecentDue   []DueCount        // the last changes of due counts: a sum
}

const stateLen = 1 + 4*8 + 3*4 + (ListCount-1)*8 + 8 // without RecentDue

func (s *State) Append(b []byte) []byte {
	b = append(b, FormatVersion)
	for _, v := range [...]uint64{s.Index, s.Term, uint64(s.ClockMS), s.NextSeq} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, s.LastTopic)
	b = binary.BigEndian.AppendUint32(b, s.Topics)
	b = binary.BigEndian.AppendUint32(b, s.GatheredDue)
	for _, n := range s.Counts[1:] {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, s.DeadReasons)
	return AppendDueCounts(b, s.RecentDue)
}

func decodeState(b []byte) (s State, err error) {
	if err := checkVersion("store", b, FormatVersion); err != nil {
		return State{}, err
	}
	if len(b) < stateLen {
		return State{}, fmt.Errorf("state record has %d bytes, want %d: %w", len(b), stateLen, ErrShort)
	}
	s.Index = binary.BigEndian.Uint64(b[1:])
	s.Term = binary.BigEndian.Uint64(b[9:])
	s.ClockMS = int64(binary.BigEndian.Uint64(b[17:]))
	s.NextSeq = binary.BigEndian.Uint64(b[25:])
	s.LastTopic = binary.BigEndian.Uint32(b[33:])
	s.Topics = binary.BigEndian.Uint32(b[37:])
	s.GatheredDue = binary.BigEndian.Uint32(b[41:])
	for i := range s.Counts[1:] {
		s.Counts[1+i] = binary.BigEndian.Uint64(b[45+8*i:])
	}
	s.DeadReasons = binary.BigEndian.Uint64(b[stateLen-8:])
	s.RecentDue, err = DecodeDueCounts(nil, b[stateLen:])
	return s, err
}

// AppendConfiguration encodes a configuration and the index of its entry.
func AppendConfiguration(b []byte, index uint64, configuration []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, index)
	return append(b, configuration...)
}

func decodeConfiguration(b []byte) (index uint64, configuration []byte, err error) {
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("configuration record of %d bytes: %w", len(b), ErrShort)
	}
	return binary.BigEndian.Uint64(b), bytes.Clone(b[8:]), nil
}

// DurableMark is the point that Raft is known to have reached. It can lie beyond
// the state's index, because Raft's own entries never come to Apply.
type DurableMark struct {
	Index, Term        uint64
	ConfigurationIndex uint64
	Configuration      []byte
}

func (w *DurableMark) Append(b []byte) []byte {
	b = append(b, FormatVersion)
	b = binary.BigEndian.AppendUint64(b, w.Index)
	b = binary.BigEndian.AppendUint64(b, w.Term)
	return AppendConfiguration(b, w.ConfigurationIndex, w.Configuration)
}

func decodeDurableMark(b []byte) (w DurableMark, err error) {
	if err := checkVersion("durable mark", b, FormatVersion); err != nil {
		return DurableMark{}, err
	}
	if len(b) < 17 {
		return DurableMark{}, fmt.Errorf("durable mark of %d bytes: %w", len(b), ErrShort)
	}
	w.Index = binary.BigEndian.Uint64(b[1:])
	w.Term = binary.BigEndian.Uint64(b[9:])
	w.ConfigurationIndex, w.Configuration, err = decodeConfiguration(b[17:])
	return w, err
}

// Furthest returns the later of a state's point and a durable mark.
func Furthest(a Applied, w DurableMark) Applied {
	if w.Index > a.Index {
		a.Index, a.Term = w.Index, w.Term
	}
	if w.ConfigurationIndex > a.ConfigurationIndex {
		a.Configuration, a.ConfigurationIndex = w.Configuration, w.ConfigurationIndex
	}
	return a
}

// Meta is everything in the meta keyspace.
type Meta struct {
	State              State
	Configuration      []byte
	ConfigurationIndex uint64
	Durable            DurableMark
	ClusterID          string
	Sharding           *jobpb.Sharding // never changed once published; nil: the cluster has one shard
	ConfigLog          ConfigLog       // of the config group of several groups
	ConfigGroup        configlog.Group // of a data group
	Version            uint32          // the cluster's
	Reset              ClockReset
	Walk               HeaderWalk
	Replaced           Replaced
	Upload             Upload
	Pending            []PendingAdvance    // by instant; all of one term
	Taken              PendingAdvance      // the last that this leader let happen before an entry that decides it; at 0: none
	Standby            *jobpb.StandbyState // never changed once published; nil: none
	Migrating          []byte              // the key at which the migration to it continues; nil: it is done
}

// Applied returns the point of the state alone, without the durable mark.
func (m *Meta) Applied() Applied {
	return Applied{
		Index: m.State.Index, Term: m.State.Term, ClockMS: m.State.ClockMS, ClockEpoch: m.Reset.Epoch,
		Configuration: m.Configuration, ConfigurationIndex: m.ConfigurationIndex,
	}
}

// Stride is the distance of the numbers that the state gives: the seqs of jobs, and the revisions of
// schedules and namespaces. The first data group of N gives 1, 1+N, 1+2N and so on, the second 2, 2+N and
// so on: so a seq is unique in the cluster, and its remainder is the shard (package slot).
func (m *Meta) Stride() uint64 {
	if m.Sharding.GetGroup() == 0 {
		return 1
	}
	return uint64(m.Sharding.Shards)
}

// HasGiven reports whether the state may have given a number.
func (m *Meta) HasGiven(number uint64) bool {
	return 0 < number && number < m.State.NextSeq && (m.State.NextSeq-number)%m.Stride() == 0
}

// Totals returns the number of topics, and of jobs by state.
func (m *Meta) Totals() *jobpb.Totals {
	c := &m.State.Counts
	return &jobpb.Totals{
		Topics:  uint64(m.State.Topics),
		Delayed: c[ListDelayed], Ready: c[ListReady],
		Reserved: c[ListReserved], Dead: c[ListDead],
		Retained: c[ListEnded],
	}
}

// ReadMeta reads the meta keyspace. A fresh store has the zero meta.
func ReadMeta(r pebble.Reader) (m Meta, err error) {
	if m.Version, m.Migrating, err = readVersion(r); err != nil {
		return Meta{}, err
	}
	err = errors.Join(
		ReadKey(r, KeyState, func(v []byte) (err error) { m.State, err = decodeState(v); return err }),
		ReadKey(r, KeyConfiguration, func(v []byte) (err error) {
			m.ConfigurationIndex, m.Configuration, err = decodeConfiguration(v)
			return err
		}),
		ReadKey(r, KeyClock, func(v []byte) (err error) { m.Reset, err = decodeClockReset(v); return err }),
		ReadKey(r, KeyHeaderWalk, func(v []byte) (err error) { m.Walk, err = decodeHeaderWalk(v); return err }),
		ReadKey(r, KeyPending, func(v []byte) (err error) { m.Pending, err = decodePending(v); return err }),
		ReadKey(r, KeyTaken, func(v []byte) (err error) { m.Taken, err = DecodeTaken(v); return err }),
		ReadKey(r, KeyReplaced, func(v []byte) (err error) { m.Replaced, err = DecodeReplaced(v); return err }),
		ReadKey(r, KeyUpload, func(v []byte) (err error) { m.Upload, err = DecodeUpload(v); return err }),
		ReadKey(r, KeyStandby, func(v []byte) (err error) { m.Standby, err = DecodeStandby(v); return err }),
		ReadKey(r, KeyDurable, func(v []byte) (err error) { m.Durable, err = decodeDurableMark(v); return err }),
		ReadKey(r, KeyConfigLog, func(v []byte) (err error) { m.ConfigLog, err = decodeConfigLog(v); return err }),
		ReadKey(r, KeyConfigGroup, func(v []byte) (err error) { m.ConfigGroup, err = decodeConfigGroup(v); return err }),
		ReadKey(r, KeyCluster, func(v []byte) error { m.ClusterID = string(v); return nil }),
		ReadKey(r, KeySharding, func(v []byte) (err error) { m.Sharding, err = DecodeSharding(v); return err }),
	)
	return m, err
}

// ReadApplied returns the point that a store has reached, the durable mark included.
func ReadApplied(r pebble.Reader) (Applied, error) {
	m, err := ReadMeta(r)
	if err != nil {
		return Applied{}, err
	}
	return Furthest(m.Applied(), m.Durable), nil
}

// ReadKey calls use with the value of key, which use must not keep. An absent
// key is no error: use is not called.
func ReadKey(r pebble.Reader, key []byte, use func(value []byte) error) error {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read key %x: %w", key, err)
	}
	err = use(v)
	if cerr := closer.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("key %x: %w", key, err)
	}
	return nil
}
