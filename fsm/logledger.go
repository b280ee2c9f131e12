package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The store replays the write-ahead logs that it finds when it is opened, and
// misses none that is not there, nor the end of one that was cut between two of
// its blocks: a state with a hole, which would look sound. So beside them lies a
// ledger of the logs that there must be. A log is in it from before its first byte
// until just before it is removed, so that after a crash there may be logs that are
// not in the ledger but none missing that is.
//
// A log that was closed, whole and synced, is in the ledger with its length and
// checksum from before the first byte of the next one. The newest has none: it may
// end early, because the Raft log has what comes behind.
//
// A store that came as a snapshot has no ledger before its first log.

// ledgerName is the ledger's file in a store's directory. Pebble ignores it.
const ledgerName = "LOGS"

// ledgerVersion starts the file; number, length and checksum of each log follow as
// uvarints, in the order of the numbers, and the CRC-32 (Castagnoli) of all that.
const ledgerVersion = 2

// maxLedger bounds what is read of the file: far more logs than there can be.
const maxLedger = 64 << 10

var (
	errLogMissing = errors.New("a part of the store's write-ahead log is missing")
	errLogChanged = errors.New("a part of the store's write-ahead log is not as it was written")
	errLedger     = errors.New("the list of the store's write-ahead logs (LOGS) is damaged")
)

// logContent is what a closed log holds; zero for one that was not seen whole. A
// file that is used again may be longer.
type logContent struct {
	size uint64
	sum  uint32
}

var ledgerTable = crc32.MakeTable(crc32.Castagnoli)

// logLedger is the file system of one store that keeps the ledger.
type logLedger struct {
	vfs.FS
	dir   string
	fatal func(error) // the ledger could not be written; Pebble forgives that where it removes a log

	mu   sync.Mutex
	logs map[uint64]logContent
}

// openLedger reads the ledger of the store in dir and checks that its logs are
// there and whole. It blocks for reading them.
func openLedger(fsys vfs.FS, dir string, fatal func(error)) (*logLedger, error) {
	l := &logLedger{FS: fsys, fatal: fatal, dir: fsys.PathDir(fsys.PathJoin(dir, ledgerName)), logs: map[uint64]logContent{}}
	f, err := fsys.Open(fsys.PathJoin(dir, ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLedger))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	if l.logs, err = decodeLedger(data); err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	for number, content := range l.logs {
		name := logName(number)
		if err := content.check(fsys, fsys.PathJoin(dir, name)); err != nil {
			return nil, fmt.Errorf("open the store in %s: %s: %w", dir, name, err)
		}
	}
	return l, nil
}

// check compares a log with what it held when it was closed.
func (c logContent) check(fsys vfs.FS, path string) error {
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errLogMissing, err)
	}
	if err != nil {
		return err
	}
	sum := crc32.New(ledgerTable)
	size, err := io.Copy(sum, io.LimitReader(f, int64(c.size)))
	switch err = errors.Join(err, f.Close()); {
	case err != nil:
		return fmt.Errorf("read it: %w", err)
	case uint64(size) < c.size:
		return fmt.Errorf("%w: it has %d bytes, and had %d", errLogChanged, size, c.size)
	case sum.Sum32() != c.sum:
		return fmt.Errorf("%w: its checksum is wrong", errLogChanged)
	}
	return nil
}

func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// logNumber is the number of a log of this store, if path names one.
func (l *logLedger) logNumber(path string) (uint64, bool) {
	name, is := strings.CutSuffix(l.PathBase(path), ".log")
	if !is || l.PathDir(path) != l.dir {
		return 0, false
	}
	number, err := strconv.ParseUint(name, 10, 64)
	return number, err == nil
}

// Unwrap lets the store find what it knows below.
func (l *logLedger) Unwrap() vfs.FS { return l.FS }

func (l *logLedger) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(path, c)
	return l.enter(path, f, err)
}

func (l *logLedger) ReuseForWrite(old, path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := l.strike(old); err != nil {
		return nil, err
	}
	f, err := l.FS.ReuseForWrite(old, path, c)
	return l.enter(path, f, err)
}

func (l *logLedger) Remove(path string) error {
	if err := l.strike(path); err != nil {
		return err
	}
	return l.FS.Remove(path)
}

// enter notes a log that was just made. Its name is made durable before, or a
// crash could leave the note without the log.
func (l *logLedger) enter(path string, f vfs.File, err error) (vfs.File, error) {
	number, is := l.logNumber(path)
	if err != nil || !is {
		return f, err
	}
	if err = syncDir(l.FS, l.dir); err == nil {
		err = l.change(func() { l.logs[number] = logContent{} })
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &storeLog{File: f, ledger: l, number: number}, nil
}

// closed takes in what a log holds that was closed. It is written with the next
// log, which Pebble makes after this.
func (l *logLedger) closed(number uint64, c logContent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.logs[number]; there {
		l.logs[number] = c
	}
}

// storeLog is a write-ahead log, written from its start. Pebble remembers a failed
// write of it until somebody waits for a sync, and drops what comes behind it
// meanwhile; here it is told at once. One goroutine at a time uses it.
type storeLog struct {
	vfs.File
	ledger *logLedger
	number uint64
	held   logContent
	synced bool // all of held
}

func (f *storeLog) Write(p []byte) (int, error) {
	f.synced = false
	f.held.size += uint64(len(p))
	f.held.sum = crc32.Update(f.held.sum, ledgerTable, p) // before: a file may change what it is given
	n, err := f.File.Write(p)
	return n, f.tell(err)
}

func (f *storeLog) Sync() error { return f.sync(f.File.Sync) }

func (f *storeLog) SyncData() error { return f.sync(f.File.SyncData) }

// SyncTo is a part of a write to Pebble, and promises nothing.
func (f *storeLog) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	return fullSync, f.tell(err)
}

func (f *storeLog) sync(do func() error) error {
	err := do()
	f.synced = err == nil
	return f.tell(err)
}

// Close enters what the log holds only if that is on disk: a power failure must
// not make a sound store look damaged.
func (f *storeLog) Close() error {
	if f.synced {
		f.ledger.closed(f.number, f.held)
	}
	return f.File.Close()
}

func (f *storeLog) tell(err error) error {
	if err != nil {
		f.ledger.fatal(fmt.Errorf("store: write the log: %w", err))
	}
	return err
}

// strike takes out a log that is to be removed.
func (l *logLedger) strike(path string) error {
	number, is := l.logNumber(path)
	if !is {
		return nil
	}
	return l.change(func() { delete(l.logs, number) })
}

// change writes the ledger anew, durably and in one step.
func (l *logLedger) change(what func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	path := l.PathJoin(l.dir, ledgerName)
	tmp := path + unfinishedSuffix
	f, err := l.FS.Create(tmp, vfsCategory)
	if err == nil {
		_, err = f.Write(encodeLedger(l.logs))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = l.FS.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(l.FS, l.dir)
	}
	if err != nil {
		err = fmt.Errorf("write the list of logs: %w", err)
		l.fatal(fmt.Errorf("store: %w", err))
	}
	return err
}

func encodeLedger(logs map[uint64]logContent) []byte {
	b := []byte{ledgerVersion}
	for _, number := range slices.Sorted(maps.Keys(logs)) {
		b = binary.AppendUvarint(b, number)
		b = binary.AppendUvarint(b, logs[number].size)
		b = binary.AppendUvarint(b, uint64(logs[number].sum))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, ledgerTable))
}

// decodeLedger is the inverse; anything else is damage.
func decodeLedger(data []byte) (map[uint64]logContent, error) {
	if len(data) < 1+4 {
		return nil, errLedger
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(body, ledgerTable) != binary.BigEndian.Uint32(sum) {
		return nil, errLedger
	}
	if v := data[0]; v != ledgerVersion {
		return nil, fmt.Errorf("the list of the store's write-ahead logs (LOGS) has format %d, and this release knows only %d: another release wrote it", v, ledgerVersion)
	}
	logs := map[uint64]logContent{}
	for rest := body[1:]; len(rest) > 0; {
		var fields [3]uint64
		for i := range fields {
			value, n := binary.Uvarint(rest)
			if n <= 0 {
				return nil, errLedger
			}
			fields[i], rest = value, rest[n:]
		}
		logs[fields[0]] = logContent{size: fields[1], sum: uint32(fields[2])}
	}
	if !bytes.Equal(encodeLedger(logs), data) {
		return nil, errLedger
	}
	return logs, nil
}
