package gossipkeys

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"tarry/internal/keyfile"
)

const (
	// MaxKeys bounds a ring: each packet that no key decrypts is tried with all of them.
	MaxKeys = 8
	// maxFile bounds what is read of a file, in bytes.
	maxFile = 4 << 10

	revisionPrefix = "# revision "
	termPrefix     = "# term "
)

// Keys are the keys of a ring, the primary first, and what orders rings (Newer).
type Keys struct {
	Revision uint64 // 0: as an operator has written them
	Term     uint64 // Raft's, of the leader that made this revision; 0: none did
	List     []Key
}

// Check returns an error unless a node can use the keys.
func (k Keys) Check() error {
	if n := len(k.List); n < 1 || n > MaxKeys {
		return fmt.Errorf("there are %d keys; it takes 1 to %d", n, MaxKeys)
	}
	for i, key := range k.List {
		if slices.Contains(k.List[:i], key) {
			return fmt.Errorf("key %v is there twice", key)
		}
	}
	return nil
}

// Fingerprints lists the keys by their fingerprints, the primary first.
func (k Keys) Fingerprints() []string {
	list := make([]string, len(k.List))
	for i, key := range k.List {
		list[i] = key.Fingerprint()
	}
	return list
}

// Equal reports whether two rings have the same revision, term and keys.
func (k Keys) Equal(other Keys) bool {
	return k.Revision == other.Revision && k.Term == other.Term && slices.Equal(k.List, other.List)
}

// Newer reports whether a ring replaces another one. The revision decides. Two leaders may
// make the same one; then that of the later term wins, and last the fingerprints, so that all
// nodes choose alike. Rings that operators have written do not replace each other: an
// operator changes them node by node.
func Newer(ring, than Version) bool {
	if ring.Revision == 0 {
		return false
	}
	return cmp.Or(cmp.Compare(ring.Revision, than.Revision), cmp.Compare(ring.Term, than.Term), slices.Compare(ring.Fingerprints, than.Fingerprints)) > 0
}

// Version is what two nodes need to know of their rings to tell which one is newer.
type Version struct {
	Revision, Term uint64
	Fingerprints   []string
}

// Version returns that of the keys.
func (k Keys) Version() Version { return Version{k.Revision, k.Term, k.Fingerprints()} }

// Parse reads the content of a file: a key in base64 on each line. Lines that begin with #
// are comments; two of them may have the revision and the term.
func Parse(data []byte) (k Keys, err error) {
	if len(data) > maxFile {
		return k, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSpace(line)
		revision, isRevision := strings.CutPrefix(string(line), revisionPrefix)
		term, isTerm := strings.CutPrefix(string(line), termPrefix)
		switch {
		case isRevision:
			if k.Revision, err = strconv.ParseUint(revision, 10, 64); err != nil {
				return Keys{}, fmt.Errorf("line %d: the revision must be a whole number", number)
			}
		case isTerm:
			if k.Term, err = strconv.ParseUint(term, 10, 64); err != nil {
				return Keys{}, fmt.Errorf("line %d: the term must be a whole number", number)
			}
		case len(line) == 0 || line[0] == '#':
		default:
			key, err := parseKey(line)
			if err != nil {
				return Keys{}, fmt.Errorf("line %d: %w: each line takes one key, as tarry keygen prints it", number, err)
			}
			k.List = append(k.List, key)
		}
	}
	if err := k.Check(); err != nil {
		return Keys{}, err
	}
	return k, nil
}

// format writes what Parse reads.
func (k Keys) format() []byte {
	var b bytes.Buffer
	b.WriteString("# The keys that encrypt gossip, the first one encrypts. Keep them secret.\n")
	fmt.Fprintf(&b, "%s%d\n%s%d\n", revisionPrefix, k.Revision, termPrefix, k.Term)
	for _, key := range k.List {
		b.WriteString(key.Secret() + "\n")
	}
	return b.Bytes()
}

// Read returns the keys in a file, which others must not be able to read.
func Read(path string) (Keys, error) {
	data, err := keyfile.Read(path, maxFile)
	if err != nil {
		return Keys{}, err
	}
	k, err := Parse(data)
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// Create makes a file with keys that only its owner can read. It fails with fs.ErrExist if
// there is one.
func Create(path string, k Keys) error { return keyfile.Create(path, k.format()) }

// temporary is where replace writes a file before it is renamed to path.
func temporary(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-new")
}

// removeTemporary removes what a crash of replace has left.
func removeTemporary(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	// Only if there is one: on a read-only mount any removal fails.
	if _, err := os.Lstat(temporary(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.Remove(temporary(path))
}

// replace replaces the keys in a file at once, and durably. It follows symbolic links and
// keeps the permissions.
func replace(path string, k Keys) error {
	if err := removeTemporary(path); err != nil {
		return err
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(temporary(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Chmod(keptMode(info, f)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err := keyfile.Finish(f, k.format()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return keyfile.SyncDir(path)
}

// keptMode returns the permissions for f, which replaces a file. The group may read it only
// if it is the same group.
func keptMode(replaced fs.FileInfo, f *os.File) fs.FileMode {
	mode := replaced.Mode().Perm()
	if stat, ok := replaced.Sys().(*syscall.Stat_t); !ok || f.Chown(-1, int(stat.Gid)) != nil {
		mode &^= 0o070
	}
	return mode
}
