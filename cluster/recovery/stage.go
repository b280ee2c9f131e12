package recovery

import (
	"context"
	"errors"
	"time"

	"tarry/cluster/backup"
	"tarry/fsm"
)

// Staging says how a backup changes before it replaces the state of a running cluster.
type Staging struct {
	Dir string // of the machine's files; it must have room
	// Now is the queue's present instant, which the clock of the state is not to be ahead of. With
	// FromNow every delay is moved by the time that has passed since the backup.
	Now     time.Time
	FromNow bool
	// ResetAuth drops all tokens, those of the running cluster too.
	ResetAuth bool
}

// Staged is a state that is ready to replace another.
type Staged struct {
	State  *fsm.Staged // the caller ends it
	Shift  time.Duration
	Counts backup.Counts // once it is in force
}

// Stage makes a backup that Verify would accept a state that may replace that of m, which goes
// on meanwhile. It blocks for as long as it takes to read the backup and every record of it
// twice. It changes nothing but the free space.
func Stage(ctx context.Context, from backup.State, m *fsm.Machine, t Staging) (s Staged, err error) {
	if err := checkFormat(&from.Header); err != nil {
		return Staged{}, err
	}
	receiver, err := receive(ctx, m, from, t.Dir, nil)
	if err != nil {
		return Staged{}, err
	}
	if s.State, err = m.Stage(receiver, fsm.Applied{Index: from.Index, Term: from.Term}); err != nil {
		return Staged{}, err
	}
	if _, err = checkState(ctx, s.State.Machine, &from.Header, nil); err == nil {
		var shift int64
		shift, err = s.State.Restore(m, fsm.Restoration{NowMS: t.Now.UnixMilli(), FromNow: t.FromNow, ResetAuth: t.ResetAuth})
		s.Shift = time.Duration(shift) * time.Millisecond
	}
	if err == nil {
		s.Counts, err = countsOf(s.State.Machine)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Staged{}, errors.Join(err, s.State.Abort())
	}
	return s, nil
}
