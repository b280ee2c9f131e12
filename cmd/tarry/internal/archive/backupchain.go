package archive

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tarry/cluster/backup"
	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/s3"
	"tarry/job"
)

// readBase reads what a later backup may leave out that has a file as its base.
func readBase(path string) (*job.BackupBase, error) {
	id, err := backupID(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := backup.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return recovery.BaseOf(r, id, filepath.Base(path))
}

// backupID returns the id of the backup in a file.
func backupID(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return backup.ReadID(f, info.Size())
}

// openState opens the state in a backup, which is whole or has its bases beside it or among
// --base. It may be read until ctx ends.
func openState(ctx context.Context, c *cli.LocalCommand, path string) (from backup.State, end func(), err error) {
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
	}
	if from, err = openLink(ctx, c, path, "", recovery.MaxChain, &ends); err != nil {
		end()
		return backup.State{}, nil, err
	}
	return from, end, nil
}

// openLink opens a backup, and the one that it is incremental to. id is what the file must have;
// empty: any.
func openLink(ctx context.Context, c *cli.LocalCommand, path, id string, most int, ends *[]func()) (backup.State, error) {
	r, end, err := openBackup(ctx, c, path)
	if err != nil {
		return backup.State{}, err
	}
	*ends = append(*ends, end)
	from := r.State()
	if id != "" {
		from = recovery.Checked(r, id)
	}
	if r.Header.BaseID == "" {
		return from, nil
	}
	if most--; most == 0 {
		return backup.State{}, fmt.Errorf("%s: its chain of bases has more than %d backups", path, recovery.MaxChain)
	}
	place, err := findBase(ctx, c, path, &r.Header)
	if err != nil {
		return backup.State{}, err
	}
	base, err := openLink(ctx, c, place, r.Header.BaseID, most, ends)
	if err != nil {
		return backup.State{}, err
	}
	if from, err = recovery.Compose(from, base); err != nil {
		return backup.State{}, fmt.Errorf("%s with its base %s: %w", path, place, err)
	}
	return from, nil
}

// findBase returns where the base of a backup is.
func findBase(ctx context.Context, c *cli.LocalCommand, path string, h *backup.Header) (string, error) {
	for _, given := range c.Bases {
		if s3.Is(given) {
			if given[strings.LastIndexByte(given, '/')+1:] == h.BaseName {
				return given, nil // its id is checked as it is read
			}
			continue
		}
		id, err := backupID(given)
		if err != nil {
			return "", fmt.Errorf("--base %s: %w", given, err)
		}
		if id == h.BaseID {
			return given, nil
		}
	}
	switch {
	case s3.Is(path):
		place := path[:strings.LastIndexByte(path, '/')]
		bucket, err := c.Store.Open(place)
		if err != nil {
			return "", err
		}
		defer bucket.Close()
		if there, err := bucket.Has(ctx, h.BaseName); err != nil || there {
			return place + "/" + h.BaseName, err
		}
	case path != "-":
		if beside := fileWithID(filepath.Dir(path), h); beside != "" {
			return beside, nil
		}
	}
	return "", fmt.Errorf("%s is incremental, and its base is missing: the backup with the id %s, made at %s, whose file was %q. Put that beside it, or name it with --base", path, h.BaseID, cli.Timestamp(h.BaseTaken()), h.BaseName)
}

// fileWithID returns the file in a directory that is the base; empty: there is none.
func fileWithID(dir string, h *backup.Header) string {
	if named := filepath.Join(dir, filepath.Base(h.BaseName)); h.BaseName != "" {
		if id, err := backupID(named); err == nil && id == h.BaseID {
			return named
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type()&fs.ModeType != 0 {
			continue
		}
		if id, err := backupID(filepath.Join(dir, e.Name())); err == nil && id == h.BaseID {
			return filepath.Join(dir, e.Name())
		}
	}
	return ""
}

// printChain prints the bases of a backup, as far as they are there.
func printChain(ctx context.Context, c *cli.LocalCommand, path string, h backup.Header) error {
	for most := recovery.MaxChain; h.BaseID != "" && most > 0; most-- {
		place, err := findBase(ctx, c, path, &h)
		if err != nil {
			return c.Out.Line("base:        %s, made at %s, whose file was %s: missing", h.BaseID, cli.Timestamp(h.BaseTaken()), h.BaseName)
		}
		r, end, err := openBackup(ctx, c, place)
		if err != nil {
			return err
		}
		path, h = place, r.Header
		end()
		whole := "whole"
		if h.BaseID != "" {
			whole = "incremental"
		}
		if err := c.Out.Line("base:        %s, made at %s, at index %d, %s, %s of state in it", place, cli.Timestamp(h.Taken()), h.Index, whole, cli.ByteSize(h.StateBytes)); err != nil {
			return err
		}
	}
	return nil
}
