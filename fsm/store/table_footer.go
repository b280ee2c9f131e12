package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkedFooters refuses tables that do not end with the version of their format. The end of a
// table is under no checksum in this format, and Pebble reads the blocks, whose checksums are right,
// by the version that it finds there: by a wrong one it crashes, or finds nothing in them.
type checkedFooters struct{ vfs.FS }

// tableEnd is what every table ends with.
func tableEnd() string {
	magic, version := storeFormat.MaxTableFormat().AsTuple()
	return string(binary.LittleEndian.AppendUint32(nil, version)) + magic
}

func (c checkedFooters) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	if err := checkEnd(f); err != nil {
		return nil, errors.Join(fmt.Errorf("the end of the table %s: %w", name, err), f.Close())
	}
	return f, nil
}

func checkEnd(f vfs.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	want := tableEnd()
	got := make([]byte, min(int64(len(want)), info.Size()))
	if _, err := f.ReadAt(got, info.Size()-int64(len(got))); err != nil && err != io.EOF {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("%w: %w: it is %x, and must be %x", pebble.ErrCorruption, errChanged, got, want)
	}
	return nil
}

// Unwrap returns the file system below, as Pebble expects.
func (c checkedFooters) Unwrap() vfs.FS { return c.FS }
