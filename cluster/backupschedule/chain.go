package backupschedule

import (
	"context"
	"fmt"
	"io"

	"tarry/cluster/backup"
	"tarry/job"
)

// Base is the backup that the next one builds on.
type Base struct {
	*job.BackupBase
	Index uint64 // the last entry of the log that it has
}

// chains finds the bases of incremental backups: files that are as they were, by their ids.
type chains map[string]*File

func chainsOf(list []File) chains {
	c := chains{}
	for i := range list {
		if f := &list[i]; f.ID != "" {
			c[f.ID] = f
		}
	}
	return c
}

// bases returns the backups that f builds on, the newest first, and what is wrong with them.
func (c chains) bases(f *File) (all []*File, problem string) {
	for f.BaseID != "" {
		base := c[f.BaseID]
		if base == nil || len(all) == len(c) {
			return all, fmt.Sprintf("its base %s is missing or damaged", f.Base)
		}
		all = append(all, base)
		f = base
	}
	return all, ""
}

// link names the problem of each file of a list whose bases are not all there.
func link(list []File) {
	c := chainsOf(list)
	for i := range list {
		if f := &list[i]; f.Problem == "" {
			_, f.Problem = c.bases(f)
		}
	}
}

// kept returns the names of the files of a list that are not too many: the newest ones, the one
// that must stay, and all on which these build.
func kept(list []File, keep int, stays string) map[string]bool {
	c := chainsOf(list)
	names := map[string]bool{}
	for i := range list {
		f := &list[i]
		if i >= keep && f.Name != stays {
			continue
		}
		names[f.Name] = true
		bases, _ := c.bases(f)
		for _, b := range bases {
			names[b.Name] = true
		}
	}
	return names
}

// base returns what the next backup may leave out, of the newest in a list; nil: it is whole.
// because says why that comes before its turn; empty: it does not.
func (s *Scheduler) base(ctx context.Context, list []File) (base *Base, because string) {
	if s.cfg.FullEvery <= 1 || len(list) == 0 {
		return nil, ""
	}
	if !s.cfg.Incremental() {
		return nil, "the cluster version is that of releases that do not read incremental ones"
	}
	newest := &list[0]
	if newest.Problem != "" {
		return nil, newest.Name + " cannot be restored: " + newest.Problem
	}
	if bases, _ := chainsOf(list).bases(newest); len(bases)+1 >= s.cfg.FullEvery {
		return nil, ""
	}
	err := s.at.open(ctx, newest, func(f io.ReaderAt) error {
		r, err := backup.NewReader(io.NewSectionReader(f, 0, newest.Bytes))
		if err != nil {
			return err
		}
		defer r.Close()
		b, err := s.cfg.BaseOf(r, newest.ID, newest.Name)
		base = &Base{b, newest.Index}
		return err
	})
	if err != nil {
		return nil, fmt.Sprintf("%s cannot be the base: %s", newest.Name, oneLine(err))
	}
	return base, ""
}

// turnedWhole says why a backup that was to build on another does not.
func (s *Scheduler) turnedWhole(base *File) string {
	if base.NodeID != s.cfg.NodeID {
		return fmt.Sprintf("node %s made %s, of files of its own", base.NodeID, base.Name)
	}
	return fmt.Sprintf("this node got its state anew since %s", base.Name)
}
