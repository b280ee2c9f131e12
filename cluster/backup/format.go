package backup

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/go-json-experiment/json"
)

// A backup is one stream of bytes. Integers are big-endian.
//
//	"TARRYBAK" version(4) length(4) header CRC-32C(4)
//	blocks: kind(1) size(4) stored size(4) CRC-32C(4) bytes
//	end:    0xff blocks(8) bytes(8) SHA-256(32)
//
// The header is a JSON object. The checksum of a block covers its kind, its sizes and its
// stored bytes; that of the header covers everything before it. The SHA-256 covers the whole
// file before it.
const (
	magic = "TARRYBAK"
	// FormatVersion is the newest version of the format. A change of the format gets another one,
	// and the Reader must still read all before it. A whole backup has version 1, so that older
	// releases read it; an incremental one has version 2, whose header names its base.
	FormatVersion = 2

	preambleLen = len(magic) + 4 + 4
	sumLen      = 4
	blockHead   = 1 + 4 + 4 + sumLen
	endLen      = 8 + 8 + 32 // after the kind

	kindStored = 1 // as it is
	kindZstd   = 2 // one Zstandard frame
	kindEnd    = 0xff

	// BlockBytes is the size of all blocks but the last, before compression. A Reader accepts
	// no larger one.
	BlockBytes = 1 << 20
	maxHeader  = 64 << 10
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Header describes the state in a backup. It comes first in the file.
type Header struct {
	ClusterID string `json:"cluster_id"` // of the cluster that was backed up
	NodeID    string `json:"node_id"`    // of the node that made it
	Release   string `json:"release"`    // of that node
	Shard     uint32 `json:"shard"`
	// Index and Term are the last entry of the log whose effects are in the state.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// QueueTimeMS is the queue's clock at that entry, TakenMS the node's when it began, both
	// in Unix milliseconds.
	QueueTimeMS int64 `json:"queue_time_ms"`
	TakenMS     int64 `json:"taken_ms"`
	// ClusterVersion and StateFormat are the versions of what is in the state: which
	// operations, and how records are written.
	ClusterVersion uint32 `json:"cluster_version"`
	StateFormat    uint32 `json:"state_format"`
	StateBytes     int64  `json:"state_bytes"` // of all blocks, before compression
	Counts         Counts `json:"counts"`
	// Of an incremental backup: the id of the backup that has the rest of the state, when that was
	// made and which name its file had. IDs are of files: 32 hexadecimal digits.
	BaseID      string `json:"base_id,omitempty"`
	BaseTakenMS int64  `json:"base_taken_ms,omitempty"`
	BaseName    string `json:"base_name,omitempty"`
}

// Format is the version of the format of a file with the header.
func (h *Header) Format() uint32 {
	if h.BaseID != "" {
		return 2
	}
	return 1
}

// BaseTaken is when the base was made.
func (h *Header) BaseTaken() time.Time { return time.UnixMilli(h.BaseTakenMS) }

// idOf is the id of a file that ends with the checksum.
func idOf(sum []byte) string { return hex.EncodeToString(sum[:idBytes]) }

// idBytes is how much of the checksum at a file's end is its id.
const idBytes = 16

// Counts are the numbers of topics, and of jobs by state.
type Counts struct {
	Topics   uint64 `json:"topics"`
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"`
}

// State is a state as it was backed up: the Header says what From has.
type State struct {
	Header
	From io.Reader
}

// QueueTime is the queue's clock at the index of the backup.
func (h *Header) QueueTime() time.Time { return time.UnixMilli(h.QueueTimeMS) }

// Taken is when the backup was made, by the clock of the node that made it.
func (h *Header) Taken() time.Time { return time.UnixMilli(h.TakenMS) }

// Jobs is the number of jobs that are not only retained.
func (c *Counts) Jobs() uint64 { return c.Delayed + c.Ready + c.Reserved + c.Dead }

// ErrDamaged is wrapped by the errors of a file that is not, or no longer, what a Writer
// has written.
var ErrDamaged = errors.New("the backup is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

func decodeHeader(b []byte) (h Header, err error) {
	if err := json.Unmarshal(b, &h, json.RejectUnknownMembers(true)); err != nil {
		return Header{}, damaged("its header cannot be read: %w", err)
	}
	switch {
	case h.StateBytes < 0:
		return Header{}, damaged("its header gives the size of the state as %d bytes", h.StateBytes)
	case h.BaseID != "" && len(h.BaseID) != 2*idBytes, h.BaseID == "" && (h.BaseTakenMS != 0 || h.BaseName != ""):
		return Header{}, damaged("its header names the base %.80q", h.BaseID)
	case h.Index == 0 || h.Term == 0:
		return Header{}, damaged("its header names no entry of a log")
	}
	return h, nil
}
