package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// Tables and blob files of a store never change, and within one generation their names are never
// used again. So a backup can leave out those that an earlier backup of the same generation has:
// its base. A generation has an id for that, which is made when it is first asked for. The
// backup's archive begins with a file of no bytes whose name has that id: a release that does
// not know it makes the file and ignores it.

const (
	storeName   = "STORE"   // in a Dir: the name of a generation and its id
	storeMark   = "0store-" // begins the name of the file with the id
	storeIDLen  = 26
	tailBytes   = 4 << 10
	maxStoreRec = 128
)

// StoreID returns the id of a generation, which is durable: fresh, a random text of 26 letters and
// digits, if it has none yet.
func (d *Dir) StoreID(generation, fresh string) (string, error) {
	d.storeID.Lock()
	defer d.storeID.Unlock()
	name := d.options.FS.PathBase(generation)
	id, err := d.readStoreID(name)
	if err != nil || id != "" {
		return id, err
	}
	if len(fresh) != storeIDLen {
		return "", fmt.Errorf("the id of a store has %d bytes, and %q has %d", storeIDLen, fresh, len(fresh))
	}
	if err := durable.Replace(d.options.FS, d.join(storeName), []byte(name+" "+fresh+"\n")); err != nil {
		return "", fmt.Errorf("write the id of the store: %w", err)
	}
	return fresh, nil
}

// readStoreID returns the id that a generation has; empty: none, or what is there is damaged,
// which costs no more than a whole backup.
func (d *Dir) readStoreID(name string) (string, error) {
	f, err := d.options.FS.Open(d.join(storeName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the id of the store: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxStoreRec))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read the id of the store: %w", err)
	}
	of, id, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	if of != name || len(id) != storeIDLen {
		return "", nil
	}
	return id, nil
}

func isStoreMark(name string) bool { return strings.HasPrefix(name, storeMark) }

func checkStoreMark(f archiveFile) error {
	if f.size != 0 || f.inBase {
		return fmt.Errorf("the file %s, which names the store, has %d bytes", f.name, f.size)
	}
	return nil
}

// neverChanges reports whether a file of a store is written once and never changed.
func neverChanges(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// Base is what a backup leaves out: files of a store that an earlier backup has.
type Base struct {
	Store string           // its id
	Files map[string]int64 // sizes by name
}

// OpenBackup is OpenArchive of a store with an id. If base is of that store, the archive is
// incremental, and has only the files that base does not have.
func OpenBackup(fsys vfs.FS, dir string, h Header, store string, base *Base) (a *Archive, incremental bool, err error) {
	files, err := filesIn(fsys, dir)
	if err != nil {
		return nil, false, err
	}
	x := archiveIndex{Header: h, files: append([]archiveFile{{name: storeMark + store}}, files...)}
	if base != nil && base.Store == store {
		x.incremental = true
		for i := range x.files {
			f := &x.files[i]
			if size, has := base.Files[f.name]; !has || size != f.size || !neverChanges(f.name) {
				continue
			}
			f.inBase = true
			if f.tail, err = tailOf(fsys, fsys.PathJoin(dir, f.name), f.size); err != nil {
				return nil, false, err
			}
		}
	}
	return newArchive(fsys, dir, x), x.incremental, nil
}

// tailOf returns the checksum of the end of a file. It tells apart files of the same name and
// size that are not the same, as after a disk was set back.
func tailOf(fsys vfs.FS, path string, size int64) (sum uint32, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return 0, err
	}
	b := make([]byte, min(size, tailBytes))
	_, err = f.ReadAt(b, size-int64(len(b)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return crc32.Checksum(b, crcTable), errors.Join(err, f.Close())
}

// ReadBase reads the beginning of a backup's archive and returns what a backup that has it as its
// base may leave out. An archive without the id of its store can be no base.
func ReadBase(archive io.Reader) (*Base, error) {
	x, err := readIndex(archive)
	if err != nil {
		return nil, err
	}
	b := &Base{Files: map[string]int64{}}
	for _, f := range x.files {
		switch {
		case isStoreMark(f.name):
			b.Store = strings.TrimPrefix(f.name, storeMark)
		case neverChanges(f.name):
			b.Files[f.name] = f.size
		}
	}
	if b.Store == "" {
		return nil, errors.New("the backup does not name its store: an older release made it, and no backup can be incremental to it")
	}
	return b, nil
}
