package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

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

// upload is an archive of which parts are stored. Its zero value: there is none.
type upload struct {
	id, size uint64
	sum      uint32 // CRC-32C of the parts
}

const uploadLen = 1 + 8 + 8 + 4

var uploadTable = crc32.MakeTable(crc32.Castagnoli)

func (u *upload) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, formatVersion), u.id)
	b = binary.BigEndian.AppendUint64(b, u.size)
	return binary.BigEndian.AppendUint32(b, u.sum)
}

func decodeUpload(b []byte) (upload, error) {
	if err := checkVersion("record of an archive", b, formatVersion); err != nil {
		return upload{}, err
	}
	if len(b) != uploadLen {
		return upload{}, fmt.Errorf("record of an archive of %d bytes: %w", len(b), errShort)
	}
	return upload{id: binary.BigEndian.Uint64(b[1:]), size: binary.BigEndian.Uint64(b[9:]), sum: binary.BigEndian.Uint32(b[17:])}, nil
}

func (u *upload) add(part []byte) {
	u.size += uint64(len(part))
	u.sum = crc32.Update(u.sum, uploadTable, part)
}

func (x *tx) putStateChunk(op *jobpb.PutStateChunk, r *jobpb.Result) error {
	u := &x.m.meta.upload
	if op.Offset == 0 {
		x.dropUpload()
		u.id = op.Upload
	}
	if op.Upload != u.id || op.Offset != u.size {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "another state arrives, or this one was dropped")
	}
	must(x.batch.Set(x.seqKey(spaceUpload, op.Offset), op.Data, nil))
	u.add(op.Data)
	x.value = u.append(x.value[:0])
	must(x.batch.Set(keyUpload, x.value, nil))
	return nil
}

func (x *tx) dropStateChunks(op *jobpb.DropStateChunks, _ *jobpb.Result) error {
	if op.GetUpload() == x.m.meta.upload.id {
		x.dropUpload()
	}
	return nil
}

// dropUpload removes the archive of which parts are stored, if there is one.
func (x *tx) dropUpload() {
	if x.m.meta.upload.id == 0 {
		return
	}
	x.m.meta.upload = upload{}
	must(x.batch.DeleteRange([]byte{spaceUpload}, []byte{spaceUpload + 1}, nil))
	must(x.batch.Delete(keyUpload, nil))
}

// replaceState checks a ReplaceState. Machine.replaceState does it, after the entry that has it.
func (x *tx) replaceState(op *jobpb.ReplaceState, r *jobpb.Result) error {
	meta := &x.m.meta
	switch {
	case x.followed:
		return errors.New("a backup has replaced the state of the primary")
	case !x.ops.Alone():
		return x.refuse(r, jobpb.Code_INVALID, "a state is replaced alone in an entry")
	case meta.upload != upload{id: op.Upload, size: op.Size, sum: op.Checksum}:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the state that is to replace this one is not here as a whole")
	case op.ClusterVersion != meta.version, op.Replacements <= meta.replaced.count:
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
	m.meta.state.index, m.meta.state.term = before.Index, before.Term
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
	err = scan(from, []byte{spaceUpload}, []byte{spaceUpload + 1}, func(_, part []byte) error {
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
	return v.read(func(from pebble.Reader) error {
		r, err := m.unpack(from)
		if err != nil {
			return err
		}
		return errors.Join(r.Inspect(readAll), r.Abort())
	})
}

func readAll(db *pebble.DB) error { return scan(db, nil, nil, func(_, _ []byte) error { return nil }) }

// Replacing reports whether the state is being replaced, which takes as long as it is large. Nothing
// else is applied meanwhile.
func (m *Machine) Replacing() bool { return m.replacing.Load() }

// Upload returns the id of the archive of which parts are stored; 0: there is none.
func (m *Machine) Upload() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.upload
}

// checkUpload compares the parts of an archive with its record.
func (c *checker) checkUpload() error {
	var has, want upload
	err := readKey(c.r, keyUpload, func(v []byte) (err error) { want, err = decodeUpload(v); return err })
	if err != nil {
		return err
	}
	err = c.scan(spaceUpload, func(key, part []byte) error {
		if at, err := seqOfKey(key); err != nil || at != has.size {
			return errors.Join(err, fmt.Errorf("the archive has %d bytes before the part at %d", has.size, at))
		}
		has.add(part)
		return nil
	})
	if has.id = want.id; err == nil && has != want {
		err = fmt.Errorf("the archive has %d bytes, and its record says %d, or another checksum", has.size, want.size)
	}
	return err
}
