package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Reader reads the state in a backup. Read returns io.EOF only after the end of the file was
// reached and every checksum was right. It needs about 4 MiB of memory. It is for one
// goroutine; Close it.
type Reader struct {
	Header Header

	from   *bufio.Reader
	sum    hash.Hash
	zstd   *zstd.Decoder
	stored []byte
	raw    []byte
	left   []byte // of raw
	blocks uint64
	bytes  uint64
	id     string
	err    error // kept; io.EOF at the end
}

// NewReader reads the header.
func NewReader(from io.Reader) (*Reader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(BlockBytes), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("decompress a backup: %w", err)
	}
	r := &Reader{from: bufio.NewReaderSize(from, 64<<10), sum: sha256.New(), zstd: decoder}
	if r.Header, err = r.header(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// State returns the state in the backup, which is read from r.
func (r *Reader) State() State { return State{r.Header, r} }

// Close releases what the Reader uses. It does not close what it reads from.
func (r *Reader) Close() { r.zstd.Close() }

func (r *Reader) header() (Header, error) {
	b := make([]byte, preambleLen)
	if err := r.fill(b); err != nil {
		return Header{}, fmt.Errorf("this is no backup of tarry: %w", err)
	}
	if string(b[:len(magic)]) != magic {
		return Header{}, fmt.Errorf("%w: this is no backup of tarry: it begins with %q", ErrDamaged, b[:len(magic)])
	}
	version := binary.BigEndian.Uint32(b[len(magic):])
	if v := version; v == 0 || v > FormatVersion {
		return Header{}, fmt.Errorf("the backup has format %d, and this release reads formats up to %d: use the release that made it, or a newer one", v, FormatVersion)
	}
	n := binary.BigEndian.Uint32(b[len(magic)+4:])
	if n > maxHeader {
		return Header{}, damaged("its header has %d bytes, at most %d are possible", n, maxHeader)
	}
	text := make([]byte, n+sumLen)
	if err := r.fill(text); err != nil {
		return Header{}, err
	}
	sum := crc32.Update(crc32.Checksum(b, crcTable), crcTable, text[:n])
	if sum != binary.BigEndian.Uint32(text[n:]) {
		return Header{}, damaged("its header does not match its checksum")
	}
	h, err := decodeHeader(text[:n])
	if err == nil && h.Format() != version {
		err = damaged("its format is %d, and that of its header %d", version, h.Format())
	}
	return h, err
}

// ID is the id of the file; empty before Read has returned io.EOF.
func (r *Reader) ID() string { return r.id }

// ReadID returns the id of the backup in a file of size bytes, from its end alone.
func ReadID(file io.ReaderAt, size int64) (string, error) {
	var b [1 + endLen]byte
	if size < int64(len(b)+preambleLen) {
		return "", damaged("it ends early, as after an interrupted copy")
	}
	if _, err := file.ReadAt(b[:], size-int64(len(b))); err != nil {
		return "", fmt.Errorf("read the end of the backup: %w", err)
	}
	if b[0] != kindEnd {
		return "", damaged("it does not have its end, as after an interrupted copy")
	}
	return idOf(b[1+16:]), nil
}

// fill reads len(b) bytes, which the whole checksum covers.
func (r *Reader) fill(b []byte) error {
	if _, err := io.ReadFull(r.from, b); err != nil {
		return ended(err)
	}
	r.sum.Write(b)
	return nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ends early, as after an interrupted copy")
	}
	return fmt.Errorf("read the backup: %w", err)
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.left) == 0 && r.err == nil {
		r.err = r.next()
	}
	if len(r.left) == 0 {
		return 0, r.err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// next reads the next block, or the end.
func (r *Reader) next() error {
	var head [blockHead]byte
	if err := r.fill(head[:1]); err != nil {
		return err
	}
	if head[0] == kindEnd {
		return r.end()
	}
	if err := r.fill(head[1:]); err != nil {
		return err
	}
	size, stored := binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
	total := r.bytes + uint64(size)
	switch {
	case head[0] != kindStored && head[0] != kindZstd:
		return damaged("block %d is of the unknown kind %d", r.blocks+1, head[0])
	case size == 0 || size > BlockBytes || stored > size || head[0] == kindStored && stored != size:
		return damaged("block %d has %d bytes, stored in %d; at most %d are possible", r.blocks+1, size, stored, BlockBytes)
	case total > uint64(r.Header.StateBytes):
		return damaged("its state goes on after the %d bytes that its header gives", r.Header.StateBytes)
	}
	if r.stored == nil {
		r.stored, r.raw = make([]byte, BlockBytes), make([]byte, 0, BlockBytes)
	}
	b := r.stored[:stored]
	if err := r.fill(b); err != nil {
		return err
	}
	sum := crc32.Update(crc32.Checksum(head[:blockHead-sumLen], crcTable), crcTable, b)
	if sum != binary.BigEndian.Uint32(head[9:]) {
		return damaged("block %d does not match its checksum", r.blocks+1)
	}
	r.left = b
	if head[0] == kindZstd {
		raw, err := r.zstd.DecodeAll(b, r.raw[:0])
		if err != nil || len(raw) != int(size) {
			return damaged("block %d cannot be decompressed to %d bytes: %w", r.blocks+1, size, err)
		}
		r.raw, r.left = raw, raw
	}
	r.blocks++
	r.bytes = total
	return nil
}

// end checks the end of the file.
func (r *Reader) end() error {
	var b [endLen]byte
	if err := r.fill(b[:16]); err != nil {
		return err
	}
	want := r.sum.Sum(nil)
	if err := r.fill(b[16:]); err != nil {
		return err
	}
	blocks, size := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
	if blocks != r.blocks || size != r.bytes || size != uint64(r.Header.StateBytes) {
		return damaged("it has %d blocks with %d bytes, but its end says %d with %d, and its header %d bytes", r.blocks, r.bytes, blocks, size, r.Header.StateBytes)
	}
	r.id = idOf(want)
	if !bytes.Equal(want, b[16:]) {
		return damaged("it does not match the checksum at its end")
	}
	if _, err := r.from.ReadByte(); err == nil {
		return damaged("it goes on after its end")
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the backup: %w", err)
	}
	return io.EOF
}

// CheckEnd returns an error unless a file of size bytes with this header has the end of its
// backup: it was not cut since it was written. It reads the end alone.
func CheckEnd(file io.ReaderAt, size int64, h *Header) error {
	var b [1 + endLen]byte
	if size < int64(len(b)) {
		return damaged("it ends early, as after an interrupted copy")
	}
	if _, err := file.ReadAt(b[:], size-int64(len(b))); err != nil {
		return fmt.Errorf("read the end of the backup: %w", err)
	}
	if b[0] != kindEnd || binary.BigEndian.Uint64(b[9:]) != uint64(h.StateBytes) {
		return damaged("it does not have the end of its %d bytes of state, as after an interrupted copy", h.StateBytes)
	}
	return nil
}
