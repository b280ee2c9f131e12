package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Version 0.1 wrote a write-ahead log, which Pebble replays when it opens a store. Pebble does not
// detect that a log is missing, or was cut off between two of its blocks: the state then has an
// undetected gap. So LOGS had all logs that must exist, each with its length and checksum if it was
// closed and synced. The newest has neither: it may end early, because the Raft log has what follows.
//
// The first Open of such a store checks its logs and moves what they hold to tables. Until LOGS names
// none of them no log is removed, so a crash at any moment leaves all that it names. The logs that
// Pebble makes since are empty. This file can go once no release reads the data of version 0.1.

var errLogMissing = errors.New("a part of the store's write-ahead log is missing")

func decodeOldLogs(b []byte) (logs map[uint64]filePrefix, err error) {
	for len(b) > 0 {
		var number uint64
		var prefix filePrefix
		if number, prefix, b, err = cutPrefix(b); err != nil {
			return nil, err
		}
		if logs == nil {
			logs = make(map[uint64]filePrefix)
		}
		logs[number] = prefix
	}
	return logs, nil
}

func (x *manifestIndex) checkOldLogs() error {
	for number, prefix := range x.oldLogs {
		name := fmt.Sprintf("%06d.log", number)
		err := prefix.check(x.FS, x.PathJoin(x.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", errLogMissing, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// replayOldLogs moves what the logs of version 0.1 hold to tables. p are the options of the store.
func (x *manifestIndex) replayOldLogs(p *pebble.Options) error {
	if len(x.oldLogs) == 0 {
		return nil
	}
	o := *p
	o.FS = keptLogs{x}
	db, err := pebble.Open(x.dir, &o)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Flush(), db.Close()); err != nil {
		return err
	}
	return x.record()
}

// keptLogs is a file system from which no log is removed.
type keptLogs struct{ vfs.FS }

func (k keptLogs) Remove(path string) error {
	if strings.HasSuffix(path, ".log") {
		return nil
	}
	return k.FS.Remove(path)
}

// Unwrap returns the file system below, as Pebble expects.
func (k keptLogs) Unwrap() vfs.FS { return k.FS }
