package check

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/configlog"
	"tarry/fsm/internal/record"
	"tarry/fsm/view"
)

// DigestVersion changes whenever the same state gets another digest.
const DigestVersion = 9

// DigestSpaces are the keyspaces of the logical state. Every node writes the same bytes
// there. Of the meta keyspace the digest has the clock, the counters, the cluster's id and
// its version: the applied index and the durable mark may differ between equal states.
var DigestSpaces = [...]byte{
	record.SpaceAdmission, record.SpaceSettings, record.SpaceDue, record.SpaceDead,
	record.SpaceForgotten, record.SpaceHeader, record.SpaceID, record.SpaceSpec, record.SpaceToken, record.SpaceConfigLog,
	record.SpaceNumber, record.SpaceNamespace, record.SpaceSchedule, record.SpaceStatus,
	record.SpaceTopic, record.SpaceUpload, record.SpaceRemoved, record.SpaceIndex,
}

// Digest returns a hash, in hexadecimal, of the logical state: it is equal on all nodes
// that have applied the same entries. It reads the whole state, in bounded memory. It calls
// looked, unless that is nil, now and then with the number of records that it has read.
func Digest(v *view.View, looked func(records uint64)) (string, error) {
	h := sha256.New()
	var buf []byte
	var records uint64
	pair := func(key, value []byte) error {
		if records++; looked != nil && records%tellEvery == 0 {
			looked(records)
		}
		// Lengths first, so that different states have different bytes.
		buf = binary.AppendUvarint(buf[:0], uint64(len(key)))
		buf = binary.AppendUvarint(buf, uint64(len(value)))
		buf = append(append(buf, key...), value...)
		h.Write(buf)
		return nil
	}
	err := v.With(func(r pebble.Reader) error {
		m, err := record.ReadMeta(r)
		if err != nil {
			return err
		}
		if err := digestMeta(m, pair); err != nil {
			return err
		}
		for _, space := range DigestSpaces {
			if err := v.Scan(r, []byte{space}, []byte{space + 1}, pair); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// digestMeta calls pair with what the digest has of the meta keyspace.
func digestMeta(m record.Meta, pair func(key, value []byte) error) error {
	m.State.NextSeq = max(m.State.NextSeq, 1)
	counters := []byte{DigestVersion}
	for _, n := range [...]uint64{uint64(m.State.ClockMS), m.State.NextSeq, uint64(m.State.LastTopic), uint64(m.Version)} {
		counters = binary.BigEndian.AppendUint64(counters, n)
	}
	for _, n := range m.Reset.Numbers() {
		counters = binary.BigEndian.AppendUint64(counters, n)
	}
	if err := pair(counters, []byte(m.ClusterID)); err != nil {
		return err
	}
	if m.ConfigLog != (record.ConfigLog{}) {
		if err := pair(record.KeyConfigLog, m.ConfigLog.Append(nil)); err != nil {
			return err
		}
	}
	if m.ConfigGroup != (configlog.Group{}) {
		if err := pair(record.KeyConfigGroup, record.AppendConfigGroup(nil, &m.ConfigGroup)); err != nil {
			return err
		}
	}
	if m.Sharding != nil {
		sharding, err := record.AppendSharding(nil, m.Sharding)
		if err != nil {
			return err
		}
		if err := pair(record.KeySharding, sharding); err != nil {
			return err
		}
	}
	if err := pair(record.KeyDueChanges, record.AppendDueCounts(nil, m.State.RecentDue)); err != nil {
		return err
	}
	if err := pair(record.KeyHeaderWalk, m.Walk.Append(nil)); err != nil {
		return err
	}
	if err := pair(record.KeyPending, record.AppendPending(nil, m.Pending)); err != nil {
		return err
	}
	if m.Standby != nil {
		standby, err := record.AppendStandby(nil, m.Standby)
		if err != nil {
			return err
		}
		if err := pair(record.KeyStandby, standby); err != nil {
			return err
		}
	}
	if m.Upload.ID != 0 {
		if err := pair(record.KeyUpload, m.Upload.Append(nil)); err != nil {
			return err
		}
	}
	return nil
}
