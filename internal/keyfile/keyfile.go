package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// othersMayNot are the permissions that a file must not give: its group may read it, as in a
// mounted secret, and nobody else.
const othersMayNot = 0o037

// Read returns what a file has, at most limit bytes. Others must not be able to read it.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	if mode := info.Mode().Perm(); mode&othersMayNot != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others can read or change it: chmod 600 %s, and replace what it has if somebody may have read it", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// Create makes a file that only its owner can read. It fails with fs.ErrExist if there is one.
func Create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := Finish(f, data); err != nil {
		return err
	}
	return SyncDir(path)
}

// Finish writes, syncs and closes f, or removes it.
func Finish(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SyncDir makes the name of a file durable.
func SyncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
