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
// misses none that is not there: a state with a hole, which would look sound. So
// beside them lies a ledger of the logs that there must be. A log is in it from
// before its first byte until just before it is removed, so that after a crash
// there may be logs that are not in the ledger but none missing that is.
//
// A store that came as a snapshot has no ledger before its first log.

// ledgerName is the ledger's file in a store's directory. Pebble ignores it.
const ledgerName = "LOGS"

// ledgerVersion starts the file; the numbers of the logs follow as uvarints, and
// the CRC-32 (Castagnoli) of all that.
const ledgerVersion = 1

// maxLedger bounds what is read of the file: far more logs than there can be.
const maxLedger = 64 << 10

var (
	errLogMissing = errors.New("a part of the store's write-ahead log is missing")
	errLedger     = errors.New("the list of the store's write-ahead logs (LOGS) is damaged")
)

var ledgerTable = crc32.MakeTable(crc32.Castagnoli)

// logLedger is the file system of one store that keeps the ledger.
type logLedger struct {
	vfs.FS
	dir   string
	fatal func(error) // the ledger could not be written; Pebble forgives that where it removes a log

	mu   sync.Mutex
	logs map[uint64]struct{}
}

// openLedger reads the ledger of the store in dir and checks that its logs are
// there.
func openLedger(fsys vfs.FS, dir string, fatal func(error)) (*logLedger, error) {
	l := &logLedger{FS: fsys, fatal: fatal, dir: fsys.PathDir(fsys.PathJoin(dir, ledgerName)), logs: map[uint64]struct{}{}}
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
	for number := range l.logs {
		name := logName(number)
		if _, err := fsys.Stat(fsys.PathJoin(dir, name)); err != nil {
			return nil, fmt.Errorf("open the store in %s: %w: %s: %w", dir, errLogMissing, name, err)
		}
	}
	return l, nil
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
		err = l.change(func() { l.logs[number] = struct{}{} })
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return storeLog{f, l.fatal}, nil
}

// storeLog is a write-ahead log. Pebble remembers a failed write of it until
// somebody waits for a sync, and drops what comes behind it meanwhile; here it is
// told at once.
type storeLog struct {
	vfs.File
	fatal func(error)
}

func (f storeLog) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.tell(err)
}

func (f storeLog) Sync() error { return f.tell(f.File.Sync()) }

func (f storeLog) SyncData() error { return f.tell(f.File.SyncData()) }

func (f storeLog) tell(err error) error {
	if err != nil {
		f.fatal(fmt.Errorf("store: write the log: %w", err))
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

func encodeLedger(logs map[uint64]struct{}) []byte {
	b := []byte{ledgerVersion}
	for _, number := range slices.Sorted(maps.Keys(logs)) {
		b = binary.AppendUvarint(b, number)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, ledgerTable))
}

// decodeLedger is the inverse; anything else is damage.
func decodeLedger(data []byte) (map[uint64]struct{}, error) {
	if len(data) < 1+4 || data[0] != ledgerVersion {
		return nil, errLedger
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(body, ledgerTable) != binary.BigEndian.Uint32(sum) {
		return nil, errLedger
	}
	logs := map[uint64]struct{}{}
	for rest := body[1:]; len(rest) > 0; {
		number, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errLedger
		}
		logs[number] = struct{}{}
		rest = rest[n:]
	}
	if !bytes.Equal(encodeLedger(logs), data) {
		return nil, errLedger
	}
	return logs, nil
}
