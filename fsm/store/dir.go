package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// Names in a Dir. They are on disk; doc.go has the layout.
const (
	currentName      = "CURRENT"
	generationPrefix = "gen-"
	checkpointPrefix = "checkpoint-"
	unfinishedSuffix = ".tmp"
)

var generationName = regexp.MustCompile(`^gen-[0-9]{6,18}$`)

func generationOf(number uint64) string { return fmt.Sprintf("%s%06d", generationPrefix, number) }

// Dir is the directory of one state: its live generation, the one that is being
// received, and the checkpoints that are being sent.
type Dir struct {
	path    string
	options Options
	live    string // the name of the live generation; used by the goroutine that calls SetLive

	checkpoints atomic.Uint64 // the number given last
	receiving   sync.Mutex    // held while a generation gets its number
	storeID     sync.Mutex    // held while the id of a generation is read or made
}

// OpenDir opens the directory in path, or makes it with an empty generation. It removes
// the leftovers of crashes. It fails if CURRENT is lost: a node that started empty then
// would look like one that never had data.
func OpenDir(path string, o Options) (*Dir, error) {
	live, err := currentGeneration(o.FS, path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, options: o.withDefaults(), live: live}, nil
}

// Beside returns a Dir for the same path that opens stores with options of its own. It knows no
// live generation, and may be called from any goroutine.
func (d *Dir) Beside(o Options) *Dir { return &Dir{path: d.path, options: o.withDefaults()} }

// Live returns the path of the live generation. It must not run concurrently with SetLive.
func (d *Dir) Live() string { return d.join(d.live) }

// SetLive makes the generation in path the live one, durably and in one step. The
// generation must be durable. After an error either of the two is live.
func (d *Dir) SetLive(path string) error {
	name := d.options.FS.PathBase(path)
	if err := writeCurrent(d.options.FS, d.path, name); err != nil {
		return err
	}
	d.live = name
	return nil
}

// CheckpointPath returns the path for a new checkpoint of the live generation. It
// may be called from any goroutine.
func (d *Dir) CheckpointPath() string {
	return d.join(fmt.Sprintf("%s%d", checkpointPrefix, d.checkpoints.Add(1)))
}

// Remove removes a generation or a checkpoint that is not in use.
func (d *Dir) Remove(path string) error { return d.options.FS.RemoveAll(path) }

func (d *Dir) join(name string) string { return d.options.FS.PathJoin(d.path, name) }

// currentGeneration returns the name of the live generation in dir. It makes the
// first one in a fresh directory.
func currentGeneration(fsys vfs.FS, dir string) (name string, err error) {
	if err := durable.MkdirAll(fsys, dir); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	name, err = liveGeneration(fsys, dir)
	if err == nil && name == "" {
		name, err = firstGeneration(fsys, dir)
	}
	if err != nil {
		return "", err
	}
	// CURRENT may come from a process that ended because its sync had failed. Then the disk may
	// still have the one before, and no later sync changes that.
	if err := writeCurrent(fsys, dir, name); err != nil {
		return "", err
	}
	return name, removeLeftovers(fsys, dir, name)
}

// liveGeneration returns the generation that CURRENT names; empty if there is no CURRENT.
func liveGeneration(fsys vfs.FS, dir string) (string, error) {
	name, err := readCurrent(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if _, err := fsys.Stat(fsys.PathJoin(dir, name)); err != nil {
		return "", fmt.Errorf("%s in %s names the generation %s, which cannot be read: %w", currentName, dir, name, err)
	}
	return name, nil
}

// firstGeneration makes an empty generation and makes it the live one.
func firstGeneration(fsys vfs.FS, dir string) (string, error) {
	if err := checkNoData(fsys, dir); err != nil {
		return "", err
	}
	name := generationOf(1)
	if err := fsys.MkdirAll(fsys.PathJoin(dir, name), 0o700); err != nil {
		return "", fmt.Errorf("make the first generation: %w", err)
	}
	return name, writeCurrent(fsys, dir, name)
}

// checkNoData returns an error if a directory without CURRENT has generations with data.
func checkNoData(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, n := range names {
		if !generationName.MatchString(n) {
			continue
		}
		files, err := fsys.List(fsys.PathJoin(dir, n))
		if err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
		if len(files) > 0 {
			return fmt.Errorf("%s is missing in %s, but %s holds data: which state is the live one is lost", currentName, dir, n)
		}
	}
	return nil
}

// readCurrent returns the name in CURRENT; fs.ErrNotExist if that is missing.
func readCurrent(fsys vfs.FS, dir string) (string, error) {
	f, err := fsys.Open(fsys.PathJoin(dir, currentName))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", currentName, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, 64))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read %s: %w", currentName, err)
	}
	name, ended := strings.CutSuffix(string(data), "\n")
	if !ended || !generationName.MatchString(name) {
		return "", fmt.Errorf("%s in %s is damaged: it holds %q, which names no generation", currentName, dir, data)
	}
	return name, nil
}

// writeCurrent writes CURRENT durably.
func writeCurrent(fsys vfs.FS, dir, name string) error {
	if err := durable.Replace(fsys, fsys.PathJoin(dir, currentName), []byte(name+"\n")); err != nil {
		return fmt.Errorf("write %s: %w", currentName, err)
	}
	return nil
}

// removeLeftovers removes generations other than the live one, unfinished files and old
// checkpoints. It keeps unknown files.
func removeLeftovers(fsys vfs.FS, dir, live string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, n := range names {
		stale := generationName.MatchString(n) || strings.HasPrefix(n, checkpointPrefix) || strings.HasSuffix(n, unfinishedSuffix)
		if n == live || !stale {
			continue
		}
		if err := fsys.RemoveAll(fsys.PathJoin(dir, n)); err != nil {
			return fmt.Errorf("remove the leftover %s: %w", n, err)
		}
	}
	return nil
}

// nextGeneration returns a number above those of all generations in dir, unfinished ones
// included.
func nextGeneration(fsys vfs.FS, dir string) (uint64, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, fmt.Errorf("state directory: %w", err)
	}
	var last uint64
	for _, n := range names {
		n = strings.TrimSuffix(n, unfinishedSuffix)
		if !generationName.MatchString(n) {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimPrefix(n, generationPrefix), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("generation %s: %w", n, err)
		}
		last = max(last, number)
	}
	return last + 1, nil
}
