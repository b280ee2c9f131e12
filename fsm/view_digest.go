package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/cockroachdb/pebble/v2"
)

// digestVersion changes whenever the same state gets another digest.
const digestVersion = 9

// digestSpaces are the keyspaces of the logical state. Every node writes the same bytes
// there. Of the meta keyspace the digest has the clock, the counters, the cluster's id and
// its version: the applied index and the durable mark may differ between equal states.
var digestSpaces = [...]byte{spaceAdmission, spaceSettings, spaceDue, spaceDead, spaceForgotten, spaceHeader, spaceID, spaceSpec, spaceToken, spaceNumber, spaceNamespace, spaceSchedule, spaceStatus, spaceTopic, spaceUpload, spaceRemoved, spaceIndex}

// Digest returns a hash, in hexadecimal, of the logical state: it is equal on all nodes
// that have applied the same entries. It reads the whole state, in bounded memory.
func (v *View) Digest() (string, error) { return v.DigestWith(nil) }

// DigestWith is Digest that tells now and then, unless looked is nil, how many records it has read.
func (v *View) DigestWith(looked func(records uint64)) (string, error) {
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
	err := v.read(func(r pebble.Reader) error {
		m, err := readMeta(r)
		if err != nil {
			return err
		}
		m.state.nextSeq = max(m.state.nextSeq, 1)
		counters := []byte{digestVersion}
		for _, n := range [...]uint64{uint64(m.state.clockMS), m.state.nextSeq, uint64(m.state.lastTopic), uint64(m.version)} {
			counters = binary.BigEndian.AppendUint64(counters, n)
		}
		for _, n := range m.reset.numbers() {
			counters = binary.BigEndian.AppendUint64(counters, n)
		}
		if err := pair(counters, []byte(m.clusterID)); err != nil {
			return err
		}
		if err := pair(keyDueChanges, appendDueCounts(nil, m.state.recentDue)); err != nil {
			return err
		}
		if err := pair(keyHeaderWalk, m.walk.append(nil)); err != nil {
			return err
		}
		if err := pair(keyPending, appendPending(nil, m.pending)); err != nil {
			return err
		}
		if m.standby != nil {
			standby, err := appendStandby(nil, m.standby)
			if err != nil {
				return err
			}
			if err := pair(keyStandby, standby); err != nil {
				return err
			}
		}
		if m.upload.id != 0 {
			if err := pair(keyUpload, m.upload.append(nil)); err != nil {
				return err
			}
		}
		for _, space := range digestSpaces {
			if err := v.scan(r, []byte{space}, []byte{space + 1}, pair); err != nil {
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
