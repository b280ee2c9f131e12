package logstore

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// checkBolt walks a bbolt file before it is opened for good. bbolt trusts what it
// maps: on a file that was cut short, or has a page of another kind in a place,
// it ends the process from a goroutine of its own while it opens, and nobody could
// say why. A file that is absent, empty or in use is left to the open itself.
func checkBolt(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a page beyond the end is a fault of memory
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v", path, p)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if errors.Is(err, bbolt.ErrTimeout) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("%s is damaged: it has %d bytes, and had %d", path, info.Size(), tx.Size())
		}
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
}
