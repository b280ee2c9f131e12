//go:build chaos && next

package fsm

import (
	"errors"
	"slices"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

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
			rec.Status.Stamps++
			x.save(rec)
			r.Count, r.Revision = rec.Status.Stamps, rec.Status.Revision
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
	return &migration{from: []byte{record.SpaceStatus}, step: (*tx).migrateStatuses}
}

// migrateStatuses rewrites the statuses of the first jobs from a key on.
func (x *tx) migrateStatuses(from []byte, most uint32) (next []byte, err error) {
	seqs, err := x.statusesFrom(from, int(most)+1)
	if err != nil {
		return nil, err
	}
	if len(seqs) > int(most) {
		next = record.AppendSeqKey(nil, record.SpaceStatus, seqs[most])
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
		if first, err = record.SeqOfKey(from); err != nil {
			return nil, err
		}
	}
	for seq, rec := range x.jobs {
		if seq >= first && !rec.Gone && rec.Status.Revision > 1 {
			seqs = append(seqs, seq)
		}
	}
	stored := 0
	err = record.Scan(x.db, from, []byte{record.SpaceStatus + 1}, func(key, _ []byte) error {
		seq, err := record.SeqOfKey(key)
		if err != nil || x.jobs[seq] != nil {
			return err
		}
		seqs = append(seqs, seq)
		if stored++; stored == most {
			return record.ErrEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, record.ErrEnough) {
		return nil, err
	}
	slices.Sort(seqs)
	return seqs[:min(len(seqs), most)], nil
}
