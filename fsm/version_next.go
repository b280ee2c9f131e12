//go:build chaos && next

package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// This build stands for the next release; see job/next.go. From the cluster version that only this build runs on a
// job's status also counts how often it was stamped.

const nextStatusVersion = statusVersion + 1

func statusFormat(version uint32) byte {
	if version < job.NextVersion {
		return statusVersion
	}
	return nextStatusVersion
}

// nextStatus has the fields that version 2 adds to a status.
type nextStatus struct{ stamps uint32 }

func (s *nextStatus) append(b []byte, format byte) []byte {
	if format < nextStatusVersion {
		return b
	}
	return binary.BigEndian.AppendUint32(b, s.stamps)
}

func (s *nextStatus) decode(b []byte, format byte) ([]byte, error) {
	if format < nextStatusVersion {
		return b, nil
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("job state record's stamps: %w", errShort)
	}
	s.stamps = binary.BigEndian.Uint32(b)
	return b[4:], nil
}

func (s *nextStatus) update(op *jobpb.Update) { s.stamps += op.Stamps() }

// nextOperation returns the row of an operation of the next release; nil: of a later one.
func nextOperation(op *jobpb.Op) *operation {
	k, ok := op.Kind.(*jobpb.Op_Stamp)
	if !ok {
		return nil
	}
	return &operation{
		do: func(x *tx, _ *jobpb.Op, r *jobpb.Result) error {
			rec, _, err := x.find(k.Stamp.Ref, r)
			if rec == nil || err != nil {
				return err
			}
			rec.status.stamps++
			x.save(rec)
			r.Count, r.Revision = rec.status.stamps, rec.status.revision
			return nil
		},
		may: func(x *tx, _ *jobpb.Op, _ *jobpb.Result) (bool, error) {
			x.caller.onJob = auth.Manage
			return true, nil
		},
	}
}

func migrationTo(version uint32) *migration {
	if version != job.NextVersion {
		return nil
	}
	return &migration{from: []byte{spaceStatus}, step: (*tx).migrateStatuses}
}

// migrateStatuses rewrites the statuses of the first jobs from a key on.
func (x *tx) migrateStatuses(from []byte, most uint32) (next []byte, err error) {
	seqs, err := x.statusesFrom(from, int(most)+1)
	if err != nil {
		return nil, err
	}
	if len(seqs) > int(most) {
		next = appendSeqKey(nil, spaceStatus, seqs[most])
		seqs = seqs[:most]
	}
	for _, seq := range seqs {
		rec, err := x.job(seq, false)
		if err != nil {
			return nil, err
		}
		x.writeStatus(rec)
	}
	return next, nil
}

// statusesFrom returns the first jobs from a key on that have a status record, as of the
// running transaction: what the store already has differs from node to node.
func (x *tx) statusesFrom(from []byte, most int) (seqs []uint64, err error) {
	// The key may be of a job that is gone.
	first := uint64(0)
	if len(from) > 1 {
		if first, err = seqOfKey(from); err != nil {
			return nil, err
		}
	}
	for seq, rec := range x.jobs {
		if seq >= first && !rec.gone && rec.status.revision > 1 {
			seqs = append(seqs, seq)
		}
	}
	stored := 0
	err = scan(x.db, from, []byte{spaceStatus + 1}, func(key, _ []byte) error {
		seq, err := seqOfKey(key)
		if err != nil || x.jobs[seq] != nil {
			return err
		}
		seqs = append(seqs, seq)
		if stored++; stored == most {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	slices.Sort(seqs)
	return seqs[:min(len(seqs), most)], nil
}
