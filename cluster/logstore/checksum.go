package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// ErrDamaged is wrapped by the error of a read that finds an entry that is not as it was
// written.
var ErrDamaged = errors.New("the entry is damaged on disk")

// raft-wal verifies checksums only when it looks for a torn end, and bbolt has none. A
// flipped bit in an older entry would reach followers, and after a restart the state. So
// every entry has a checksum after Raft's extensions, which Tarry does not use: 4 bytes
// and a mark. Entries of earlier releases have no extensions and are not checked. These
// bytes are on disk.
const (
	sumMark = 0xC5
	sumLen  = 5
)

var sumTable = crc32.MakeTable(crc32.Castagnoli)

func sumOf(e *raft.Log, extensions []byte) uint32 {
	head := binary.BigEndian.AppendUint64(nil, e.Index)
	head = binary.BigEndian.AppendUint64(head, e.Term)
	sum := crc32.Checksum(append(head, byte(e.Type)), sumTable)
	return crc32.Update(crc32.Update(sum, sumTable, e.Data), sumTable, extensions)
}

// withChecksums returns copies of entries that have their checksums. The caller's entries
// must not change.
func withChecksums(entries []*raft.Log) []*raft.Log {
	made := make([]raft.Log, len(entries))
	out := make([]*raft.Log, len(entries))
	for i, e := range entries {
		made[i] = *e
		sum := binary.BigEndian.AppendUint32(e.Extensions[:len(e.Extensions):len(e.Extensions)], sumOf(e, e.Extensions))
		made[i].Extensions = append(sum, sumMark)
		out[i] = &made[i]
	}
	return out
}

// verifyChecksum checks an entry that was read, and removes the checksum from it.
func verifyChecksum(e *raft.Log) error {
	n := len(e.Extensions) - sumLen
	if len(e.Extensions) == 0 {
		return nil
	}
	if n < 0 || e.Extensions[n+4] != sumMark {
		return fmt.Errorf("entry %d: %w: it has no checksum", e.Index, ErrDamaged)
	}
	if binary.BigEndian.Uint32(e.Extensions[n:]) != sumOf(e, e.Extensions[:n]) {
		return fmt.Errorf("entry %d: %w: its checksum is wrong", e.Index, ErrDamaged)
	}
	e.Extensions = e.Extensions[:n:n]
	if n == 0 {
		e.Extensions = nil
	}
	return nil
}
