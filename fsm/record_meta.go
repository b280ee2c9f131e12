package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// formatVersion is the version of the whole store's layout. A store of another version is
// refused.
const formatVersion = 10

// FormatVersion is the version of the layout of a state, for the header of a backup.
const FormatVersion uint32 = formatVersion

// Names in the meta keyspace. They are on disk.
var (
	keyState         = []byte{spaceMeta, 'a'} // rewritten by every batch
	keyConfiguration = []byte{spaceMeta, 'c'}
	keyClock         = []byte{spaceMeta, 'k'}
	keyHeaderWalk    = []byte{spaceMeta, 'h'}
	keyCluster       = []byte{spaceMeta, 'i'}
	keyPending       = []byte{spaceMeta, 'p'}
	keyReplaced      = []byte{spaceMeta, 'r'}
	keyStandby       = []byte{spaceMeta, 's'}
	keyTaken         = []byte{spaceMeta, 't'} // of one node alone: releases that do not know it keep it
	keyUpload        = []byte{spaceMeta, 'u'}
	keyVersion       = []byte{spaceMeta, 'v'} // read before all others
	keyDurable       = []byte{spaceMeta, 'w'}
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

// stateRecord is rewritten by every batch: the index of its last entry, and the counters
// that are part of the state.
type stateRecord struct {
	index, term uint64
	clockMS     int64
	nextSeq     uint64
	lastTopic   uint32 // the number of the newest topic
	topics      uint32
	gatheredDue uint32            // changes of due counts that keyDueChanges has been given
	counts      [listCount]uint64 // places by list, of all topics together
	deadReasons uint64            // that dead jobs have
	recentDue   []dueCount        // the last changes of due counts: a sum
}

const stateLen = 1 + 4*8 + 3*4 + (listCount-1)*8 + 8 // without recentDue

func (s *stateRecord) append(b []byte) []byte {
	b = append(b, formatVersion)
	for _, v := range [...]uint64{s.index, s.term, uint64(s.clockMS), s.nextSeq} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, s.lastTopic)
	b = binary.BigEndian.AppendUint32(b, s.topics)
	b = binary.BigEndian.AppendUint32(b, s.gatheredDue)
	for _, n := range s.counts[1:] {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint64(b, s.deadReasons)
	return appendDueCounts(b, s.recentDue)
}

func decodeState(b []byte) (s stateRecord, err error) {
	if err := checkVersion("store", b, formatVersion); err != nil {
		return stateRecord{}, err
	}
	if len(b) < stateLen {
		return stateRecord{}, fmt.Errorf("state record has %d bytes, want %d: %w", len(b), stateLen, errShort)
	}
	s.index = binary.BigEndian.Uint64(b[1:])
	s.term = binary.BigEndian.Uint64(b[9:])
	s.clockMS = int64(binary.BigEndian.Uint64(b[17:]))
	s.nextSeq = binary.BigEndian.Uint64(b[25:])
	s.lastTopic = binary.BigEndian.Uint32(b[33:])
	s.topics = binary.BigEndian.Uint32(b[37:])
	s.gatheredDue = binary.BigEndian.Uint32(b[41:])
	for i := range s.counts[1:] {
		s.counts[1+i] = binary.BigEndian.Uint64(b[45+8*i:])
	}
	s.deadReasons = binary.BigEndian.Uint64(b[stateLen-8:])
	s.recentDue, err = decodeDueCounts(nil, b[stateLen:])
	return s, err
}

// appendConfiguration encodes a configuration and the index of its entry.
func appendConfiguration(b []byte, index uint64, configuration []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, index)
	return append(b, configuration...)
}

func decodeConfiguration(b []byte) (index uint64, configuration []byte, err error) {
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("configuration record of %d bytes: %w", len(b), errShort)
	}
	return binary.BigEndian.Uint64(b), bytes.Clone(b[8:]), nil
}

// durableMark is the point that Raft is known to have reached. It can lie beyond
// the state's index, because Raft's own entries never come to Apply.
type durableMark struct {
	index, term        uint64
	configurationIndex uint64
	configuration      []byte
}

func (w *durableMark) append(b []byte) []byte {
	b = append(b, formatVersion)
	b = binary.BigEndian.AppendUint64(b, w.index)
	b = binary.BigEndian.AppendUint64(b, w.term)
	return appendConfiguration(b, w.configurationIndex, w.configuration)
}

func decodeDurableMark(b []byte) (w durableMark, err error) {
	if err := checkVersion("durable mark", b, formatVersion); err != nil {
		return durableMark{}, err
	}
	if len(b) < 17 {
		return durableMark{}, fmt.Errorf("durable mark of %d bytes: %w", len(b), errShort)
	}
	w.index = binary.BigEndian.Uint64(b[1:])
	w.term = binary.BigEndian.Uint64(b[9:])
	w.configurationIndex, w.configuration, err = decodeConfiguration(b[17:])
	return w, err
}

// furthest returns the later of a state's point and a durable mark.
func furthest(a Applied, w durableMark) Applied {
	if w.index > a.Index {
		a.Index, a.Term = w.index, w.term
	}
	if w.configurationIndex > a.ConfigurationIndex {
		a.Configuration, a.ConfigurationIndex = w.configuration, w.configurationIndex
	}
	return a
}

// meta is everything in the meta keyspace.
type meta struct {
	state              stateRecord
	configuration      []byte
	configurationIndex uint64
	durable            durableMark
	clusterID          string
	version            uint32 // the cluster's
	reset              clockReset
	walk               headerWalk
	replaced           replaced
	upload             upload
	pending            []pendingAdvance    // by instant; all of one term
	taken              pendingAdvance      // the last that this leader let happen before an entry that decides it; at 0: none
	standby            *jobpb.StandbyState // never changed once published; nil: none
	migrating          []byte              // the key at which the migration to it continues; nil: it is done
}

// applied returns the point of the state alone, without the durable mark.
func (m *meta) applied() Applied {
	return Applied{
		Index: m.state.index, Term: m.state.term, ClockMS: m.state.clockMS, ClockEpoch: m.reset.epoch,
		Configuration: m.configuration, ConfigurationIndex: m.configurationIndex,
	}
}

// totals returns the number of topics, and of jobs by state.
func (m *meta) totals() *jobpb.Totals {
	c := &m.state.counts
	return &jobpb.Totals{
		Topics:  uint64(m.state.topics),
		Delayed: c[listDelayed], Ready: c[listReady],
		Reserved: c[listReserved], Dead: c[listDead],
		Retained: c[listEnded],
	}
}

// readMeta reads the meta keyspace. A fresh store has the zero meta.
func readMeta(r pebble.Reader) (m meta, err error) {
	if m.version, m.migrating, err = readVersion(r); err != nil {
		return meta{}, err
	}
	err = errors.Join(
		readKey(r, keyState, func(v []byte) (err error) { m.state, err = decodeState(v); return err }),
		readKey(r, keyConfiguration, func(v []byte) (err error) {
			m.configurationIndex, m.configuration, err = decodeConfiguration(v)
			return err
		}),
		readKey(r, keyClock, func(v []byte) (err error) { m.reset, err = decodeClockReset(v); return err }),
		readKey(r, keyHeaderWalk, func(v []byte) (err error) { m.walk, err = decodeHeaderWalk(v); return err }),
		readKey(r, keyPending, func(v []byte) (err error) { m.pending, err = decodePending(v); return err }),
		readKey(r, keyTaken, func(v []byte) (err error) { m.taken, err = decodeTaken(v); return err }),
		readKey(r, keyReplaced, func(v []byte) (err error) { m.replaced, err = decodeReplaced(v); return err }),
		readKey(r, keyUpload, func(v []byte) (err error) { m.upload, err = decodeUpload(v); return err }),
		readKey(r, keyStandby, func(v []byte) (err error) { m.standby, err = decodeStandby(v); return err }),
		readKey(r, keyDurable, func(v []byte) (err error) { m.durable, err = decodeDurableMark(v); return err }),
		readKey(r, keyCluster, func(v []byte) error { m.clusterID = string(v); return nil }),
	)
	return m, err
}

// readApplied returns the point that a store has reached, the durable mark included.
func readApplied(r pebble.Reader) (Applied, error) {
	m, err := readMeta(r)
	if err != nil {
		return Applied{}, err
	}
	return furthest(m.applied(), m.durable), nil
}

// readKey calls use with the value of key, which use must not keep. An absent
// key is no error: use is not called.
func readKey(r pebble.Reader, key []byte, use func(value []byte) error) error {
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
