package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
)

// Writer writes a backup. It is for one goroutine. A backup is whole only after Close.
type Writer struct {
	to     io.Writer
	sum    hash.Hash
	zstd   *zstd.Encoder
	raw    []byte // the present block
	out    []byte // scratch
	size   int64  // promised
	blocks uint64
	bytes  uint64
	err    error // the first failure, kept
}

// NewWriter writes the header. Exactly h.StateBytes bytes must follow.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	text, err := json.Marshal(h, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the header of a backup: %w", err)
	}
	if _, err := decodeHeader(text); err != nil || len(text) > maxHeader {
		return nil, fmt.Errorf("the header of a backup has %d bytes: %w", len(text), err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("compress a backup: %w", err)
	}
	w := &Writer{to: to, sum: sha256.New(), zstd: encoder, raw: make([]byte, 0, BlockBytes), size: h.StateBytes}
	b := append([]byte(nil), magic...)
	b = binary.BigEndian.AppendUint32(b, h.Format())
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	return w, w.emit(binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable)))
}

// emit writes bytes that the whole checksum covers.
func (w *Writer) emit(b []byte) error {
	if w.err == nil {
		w.sum.Write(b)
		_, w.err = w.to.Write(b)
	}
	return w.err
}

// Write adds bytes of the state. It writes whole blocks, in one call of the Writer below
// each.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > n {
		took := min(len(p)-n, BlockBytes-len(w.raw))
		w.raw = append(w.raw, p[n:n+took]...)
		n += took
		if len(w.raw) == BlockBytes {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, w.err
}

// flush writes the present block.
func (w *Writer) flush() error {
	if len(w.raw) == 0 {
		return w.err
	}
	w.out = append(w.out[:0], make([]byte, blockHead)...)
	w.out = w.zstd.EncodeAll(w.raw, w.out)
	kind := byte(kindZstd)
	if len(w.out)-blockHead >= len(w.raw) {
		kind = kindStored
		w.out = append(w.out[:blockHead], w.raw...)
	}
	w.out[0] = kind
	binary.BigEndian.PutUint32(w.out[1:], uint32(len(w.raw)))
	binary.BigEndian.PutUint32(w.out[5:], uint32(len(w.out)-blockHead))
	binary.BigEndian.PutUint32(w.out[9:], blockSum(w.out))
	w.blocks++
	w.bytes += uint64(len(w.raw))
	w.raw = w.raw[:0]
	return w.emit(w.out)
}

// blockSum is the checksum of a block: of its head without the checksum, and its bytes.
func blockSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:blockHead-sumLen], crcTable), crcTable, b[blockHead:])
}

// Close writes the end. It does not close the Writer below.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	defer func() { _ = w.zstd.Close() }() // it has no writer to flush to
	if int64(w.bytes) != w.size {
		w.err = fmt.Errorf("the state has %d bytes, the header of its backup says %d", w.bytes, w.size)
		return w.err
	}
	b := append(w.out[:0], kindEnd)
	b = binary.BigEndian.AppendUint64(b, w.blocks)
	b = binary.BigEndian.AppendUint64(b, w.bytes)
	if err := w.emit(b); err != nil {
		return err
	}
	if err := w.emit(w.sum.Sum(nil)); err != nil {
		return err
	}
	w.err = errors.New("the backup was closed")
	return nil
}
