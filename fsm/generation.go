package fsm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The layout below a machine's directory. The names are on disk:
//
//	CURRENT           names the live generation
//	gen-000001/       the store of a generation
//	gen-000002.tmp/   a generation that is being received
//	checkpoint-7/     a store held still while it is sent
//
// A generation is complete before CURRENT names it, and CURRENT is replaced in
// one step, so that a crash leaves either the old state or the new one.
const (
	currentName      = "CURRENT"
	generationPrefix = "gen-"
	checkpointPrefix = "checkpoint-"
	unfinishedSuffix = ".tmp"
)

const vfsCategory = vfs.WriteCategoryUnspecified

var generationName = regexp.MustCompile(`^gen-[0-9]{6,18}$`)

func generationOf(number uint64) string { return fmt.Sprintf("%s%06d", generationPrefix, number) }

// currentGeneration returns the path of the live generation in dir. It makes the
// first one in a fresh directory and removes what crashes have left behind. When
// CURRENT is lost it refuses: an empty start beside old data would look like a
// node that never had any.
func currentGeneration(fsys vfs.FS, dir string) (path string, err error) {
	if err := makeDir(fsys, dir); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	name, err := readCurrent(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		name, err = firstGeneration(fsys, dir)
	}
	if err != nil {
		return "", err
	}
	path = fsys.PathJoin(dir, name)
	if _, err := fsys.Stat(path); err != nil {
		return "", fmt.Errorf("%s in %s names the generation %s, which cannot be read: %w", currentName, dir, name, err)
	}
	if err := removeLeftovers(fsys, dir, name); err != nil {
		return "", err
	}
	return path, nil
}

// firstGeneration makes an empty generation and names it.
func firstGeneration(fsys vfs.FS, dir string) (string, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	for _, n := range names {
		if !generationName.MatchString(n) {
			continue
		}
		files, err := fsys.List(fsys.PathJoin(dir, n))
		if err != nil {
			return "", fmt.Errorf("state directory: %w", err)
		}
		if len(files) > 0 {
			return "", fmt.Errorf("%s is missing in %s, but %s holds data: which state is the live one is lost; move the directory away, and the node will rejoin as a new member", currentName, dir, n)
		}
	}
	name := generationOf(1)
	if err := fsys.MkdirAll(fsys.PathJoin(dir, name), 0o700); err != nil {
		return "", fmt.Errorf("make the first generation: %w", err)
	}
	return name, writeCurrent(fsys, dir, name)
}

// readCurrent returns the name that CURRENT holds; fs.ErrNotExist without one.
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

// writeCurrent makes name the live generation, durably. The generation itself
// must be durable before.
func writeCurrent(fsys vfs.FS, dir, name string) error {
	path := fsys.PathJoin(dir, currentName)
	tmp := path + unfinishedSuffix
	f, err := fsys.Create(tmp, vfsCategory)
	if err != nil {
		return fmt.Errorf("write %s: %w", currentName, err)
	}
	_, err = f.Write([]byte(name + "\n"))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", currentName, err)
	}
	return syncDir(fsys, dir)
}

// removeLeftovers removes what no running machine uses: generations other than
// the live one, unfinished files and old checkpoints. It leaves alone what it
// does not know.
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

// nextGeneration is a number above all that dir holds, finished or not.
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

// makeDir makes dir and the missing directories above it, durably.
func makeDir(fsys vfs.FS, dir string) error {
	_, err := fsys.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := fsys.PathDir(dir)
	if above != dir {
		if err := makeDir(fsys, above); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fsys, above)
}

// syncDir makes the names in a directory durable.
func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
