package fsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// A backup replaces the state of a running cluster through the log, in ordinary operations. The
// leader makes the state that is to be (replace.go), and puts it into the log as an archive, in
// parts. The parts are stored as they are: so they are part of the state, and of a snapshot, and
// whoever has them needs nothing else. Meanwhile the queue goes on. Then one operation makes the
// archive the state, on each node at the same entry: what comes before it is applied to the old
// state, what comes after it to the new one.
//
// A node builds the new state in a generation of its own and makes it the live one in one durable
// step, with the index of the entry. Until then its store has an earlier index, so after a crash
// the entry is applied again.

func (x *tx) putStateChunk(op *jobpb.PutStateChunk, r *jobpb.Result) error {
	u := &x.m.meta.Upload
	if op.Offset == 0 {
		x.dropUpload()
		u.ID = op.Upload
	}
	if op.Upload != u.ID || op.Offset != u.Size {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "another state arrives, or this one was dropped")
	}
	must(x.batch.Set(x.seqKey(record.SpaceUpload, op.Offset), op.Data, nil))
	u.Add(op.Data)
	x.value = u.Append(x.value[:0])
	must(x.batch.Set(record.KeyUpload, x.value, nil))
	return nil
}

func (x *tx) dropStateChunks(op *jobpb.DropStateChunks, _ *jobpb.Result) error {
	if op.GetUpload() == x.m.meta.Upload.ID {
		x.dropUpload()
	}
	return nil
}

// dropUpload removes the archive of which parts are stored, if there is one.
func (x *tx) dropUpload() {
	if x.m.meta.Upload.ID == 0 {
		return
	}
	x.m.meta.Upload = record.Upload{}
	must(x.batch.DeleteRange([]byte{record.SpaceUpload}, []byte{record.SpaceUpload + 1}, nil))
	must(x.batch.Delete(record.KeyUpload, nil))
}

// replaceState checks a ReplaceState. Machine.replaceState does it, after the entry that has it.
func (x *tx) replaceState(op *jobpb.ReplaceState, r *jobpb.Result) error {
	meta := &x.m.meta
	switch {
	case x.followed:
		return errors.New("a backup has replaced the state of the primary")
	case !x.ops.Alone():
		return x.refuse(r, jobpb.Code_INVALID, "a state is replaced alone in an entry")
	case meta.Upload != record.Upload{ID: op.Upload, Size: op.Size, Sum: op.Checksum}:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the state that is to replace this one is not here as a whole")
	case op.ClusterVersion != meta.Version, op.Replacements <= meta.Replaced.Count:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the cluster's version has changed, or its state was replaced, since the backup was sent")
	case op.ClockMs > x.clock():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since the backup was sent")
	}
	x.toReplace = op
	return nil
}

// replaceState makes the stored archive the state, at the entry e. before is the point of the
// state before e: the old state keeps it, in case that the new one cannot be made.
func (m *Machine) replaceState(before, e Entry, changes *Changes, changed map[string]int) error {
	m.replacing.Store(true)
	defer m.replacing.Store(false)
	op := m.tx.toReplace
	m.tx.toReplace = nil
	m.meta.State.Index, m.meta.State.Term = before.Index, before.Term
	m.tx.dropPending() // its consumers are those of the old state
	if err := m.commit(changes, changed); err != nil {
		return err
	}
	r, err := m.unpack(m.store.db.DB)
	if err != nil {
		return err
	}
	s, err := m.openStaged(r)
	if err == nil {
		err = errors.Join(s.takeOver(m, e, op), s.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replace the state: %w", err), r.Abort())
	}
	old := m.TopicChanges()
	if err := m.swapTo(r); err != nil {
		return err
	}
	for _, list := range [][]TopicChange{old, m.TopicChanges()} {
		for _, c := range list {
			if m.topics[c.Name] == nil {
				c = TopicChange{Name: c.Name}
			}
			changes.set(c, changed)
		}
	}
	changes.Cluster, changes.Schedules = true, true
	return nil
}

// unpack makes a generation of the stored archive.
func (m *Machine) unpack(from pebble.Reader) (*Receiver, error) {
	r, err := m.Receive()
	if err != nil {
		return nil, err
	}
	err = record.Scan(from, []byte{record.SpaceUpload}, []byte{record.SpaceUpload + 1}, func(_, part []byte) error {
		_, err := r.Write(part)
		return err
	})
	if err == nil {
		err = r.Finish()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unpack the stored state: %w", err), r.Abort())
	}
	return r, nil
}

// CheckUpload unpacks what is stored of an archive, reads every record of it, and removes it again.
// A ReplaceState can rely on an archive that has passed it. It needs the room for the state
// and may be called from any goroutine.
func (m *Machine) CheckUpload() (err error) {
	v := m.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.With(func(from pebble.Reader) error {
		r, err := m.unpack(from)
		if err != nil {
			return err
		}
		return errors.Join(r.Inspect(readAll), r.Abort())
	})
}

func readAll(db *pebble.DB) error {
	return record.Scan(db, nil, nil, func(_, _ []byte) error { return nil })
}

// Replacing reports whether the state is being replaced, which takes as long as it is large. Nothing
// else is applied meanwhile.
func (m *Machine) Replacing() bool { return m.replacing.Load() }

// Upload returns the id of the archive of which parts are stored; 0: there is none.
func (m *Machine) Upload() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.upload
}
