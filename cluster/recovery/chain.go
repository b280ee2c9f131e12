package recovery

import (
	"errors"
	"fmt"
	"io"

	"tarry/cluster/backup"
	"tarry/fsm"
	"tarry/job"
)

// MaxChain bounds how many backups an incremental one needs.
const MaxChain = 100

// BaseOf returns what a later backup may leave out that has the file of r as its base, which is
// called name. It reads the beginning of the file.
func BaseOf(r *backup.Reader, id, name string) (*job.BackupBase, error) {
	files, err := fsm.ReadBase(r)
	if err != nil {
		return nil, err
	}
	return &job.BackupBase{ID: id, Name: name, TakenMS: r.Header.TakenMS, Store: files.Store, Files: files.Files}, nil
}

// Compose returns the whole state that an incremental backup makes with the state of its base.
// The base must be whole itself, and is read to its end.
func Compose(top, base backup.State) (backup.State, error) {
	h := top.Header
	if base.ClusterID != h.ClusterID || base.Index > h.Index {
		return backup.State{}, fmt.Errorf("its base is at entry %d of cluster %s, and the backup at entry %d of cluster %s: it is another backup's", base.Index, base.ClusterID, h.Index, h.ClusterID)
	}
	from, size, err := fsm.Compose(top.From, base.From)
	if err != nil {
		return backup.State{}, fmt.Errorf("%w: %w", backup.ErrDamaged, err)
	}
	h.BaseID, h.BaseTakenMS, h.BaseName, h.StateBytes = "", 0, "", size
	return backup.State{Header: h, From: from}, nil
}

// Checked returns the state in r, which ends with an error unless the file has the id.
func Checked(r *backup.Reader, id string) backup.State {
	return backup.State{Header: r.Header, From: &checkedID{r, id}}
}

type checkedID struct {
	r  *backup.Reader
	id string
}

func (c *checkedID) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if errors.Is(err, io.EOF) && c.r.ID() != c.id {
		return n, fmt.Errorf("the base has the id %s, and %s is needed", c.r.ID(), c.id)
	}
	return n, err
}
