package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The number of shards of a cluster with several is in the identity of each directory: a group
// whose directory is lost must not look like one that never was. It is recorded once the groups
// above 0 have their directories and before group 0 has its own, so a directory of group 0 without a
// recorded number is of a cluster with one shard.

// Shards returns how many shards the cluster of this directory has. Of a new directory that is
// asked, or 1 if asked is 0, as it is without the flag. Of another it must be 0 or the number that
// is recorded.
func (d *Dir) Shards(asked int) (int, error) {
	recorded := d.id.Shards
	if recorded == 0 {
		switch _, err := os.Stat(d.Shard(0)); {
		case errors.Is(err, fs.ErrNotExist):
			return cmp.Or(asked, 1), nil
		case err != nil:
			return 0, fmt.Errorf("data directory: %w", err)
		}
		recorded = 1
	}
	if asked != 0 && asked != recorded {
		return 0, unusable{fmt.Errorf("data directory %s is of a cluster whose number of shards is %d, but --shards is %d: it does not change. Leave the flag out; for another number, restore a backup into a new cluster", d.path, recorded, asked)}
	}
	return recorded, nil
}

// HasGroups reports whether the directories of the groups above 0 were created.
func (d *Dir) HasGroups() bool { return d.id.Shards != 0 }

// RecordShards records how many shards the cluster has, which are several. The directories of
// their groups must exist.
func (d *Dir) RecordShards(n int) error {
	d.id.Shards = n
	return d.save()
}
