package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tarry/cluster/backup"
	"tarry/cluster/datadir"
	"tarry/cluster/diskspace"
	"tarry/cluster/raftconfig"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

// Target is where a backup is restored to.
type Target struct {
	DataDir  string // empty, or not there
	NodeID   string // of the first node of the new cluster
	LogStore string // empty: the default
	Address  string // cluster address of that node, host:port; it may be wrong
	// Now is the present instant. With FromNow every delay is moved by the time that has
	// passed since the backup.
	Now     time.Time
	FromNow bool
	// Standby makes the first node of a standby, which follows the cluster of the backup. It
	// excludes FromNow and ResetAuth: the state stays as it is.
	Standby bool
	// ResetAuth drops the tokens of the backup and their settings.
	ResetAuth bool
	Progress  Progress
}

// Restored is what a restore has made.
type Restored struct {
	ClusterID string // of the new cluster
	ServerID  string // Raft's id of its first node
	Index     uint64 // at which its log begins
	Shift     time.Duration
	Counts    backup.Counts
	Tokens    int // of clients
	Mode      jobpb.AuthMode
	Invited   bool // other nodes need an invitation, or a certificate
}

// Restore makes the data directory of the first node of a new cluster from a backup that
// Verify would accept. It blocks for as long as it takes to read the backup twice and every
// record of it; if FromNow is set, to rewrite them. It may be interrupted by ctx: no node
// starts in an incomplete directory, and a later Restore into it begins anew.
func Restore(ctx context.Context, from backup.State, t Target) (done Restored, err error) {
	if err := checkFormat(&from.Header); err != nil {
		return Restored{}, err
	}
	dir, err := datadir.OpenForRestore(t.DataDir, t.NodeID, t.LogStore)
	if err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	// From here on no node starts in the directory, until a restore has ended.
	s, err := openStores(dir, true, false)
	if err == nil {
		done, err = s.restore(ctx, from, t, dir.ServerID())
		err = errors.Join(err, s.close())
	}
	if err == nil {
		err = dir.EndRestore()
	}
	if err != nil {
		return Restored{}, fmt.Errorf("nothing can start in %s: %w", t.DataDir, err)
	}
	return done, nil
}

func (s *stores) restore(ctx context.Context, from backup.State, t Target, serverID string) (Restored, error) {
	h := &from.Header
	if err := load(ctx, s.machine, from, t.DataDir, t.Progress.Read); err != nil {
		return Restored{}, err
	}
	if _, err := checkState(ctx, s.machine, h, t.Progress.Checked); err != nil {
		return Restored{}, err
	}
	if err := setTerm(s.log.Stable, h.Term); err != nil {
		return Restored{}, err
	}
	done := Restored{ClusterID: newClusterID(), ServerID: serverID, Index: h.Index + 1}
	if t.FromNow {
		done.Shift = max(0, t.Now.Sub(h.QueueTime()))
	}
	err := s.machine.EnterCluster(fsm.NewCluster{
		ID: done.ClusterID, NodeID: raftconfig.NodeID(serverID), Index: done.Index, Term: h.Term, Configuration: onlyVoter(serverID, t.Address),
		Restored: !t.Standby, Standby: t.Standby, ShiftMS: done.Shift.Milliseconds(), ResetAuth: t.ResetAuth,
	})
	if err != nil {
		return Restored{}, err
	}
	done.Tokens, done.Mode = s.machine.Auth().Tokens(), s.machine.Auth().Mode()
	done.Invited = s.machine.Admission().GetMode() == jobpb.AdmissionMode_ADMISSION_INVITED
	done.Counts, err = countsOf(s.machine)
	return done, err
}

// checkFormat returns an error unless this release can use the state of a backup.
func checkFormat(h *backup.Header) error {
	if err := job.ReleaseVersions().Check(h.ClusterVersion); err != nil {
		return fmt.Errorf("the backup was made at a cluster version that this release (%s made it) cannot use: %w", h.Release, err)
	}
	if h.StateFormat != fsm.FormatVersion {
		return fmt.Errorf("the state in the backup has format %d, and this release uses format %d: restore it with the release that made it, %s", h.StateFormat, fsm.FormatVersion, h.Release)
	}
	return nil
}

// load makes the state in a backup that of m, whose files are below dir. Every record is read
// once, and the whole backup is checked before the state is replaced. It writes no more than
// the size that the header gives, and nothing if that does not fit on the disk.
func load(ctx context.Context, m *fsm.Machine, from backup.State, dir string, progress func(int64)) error {
	receiver, err := receive(ctx, m, from, dir, progress)
	if err != nil {
		return err
	}
	return m.Install(receiver, fsm.Applied{Index: from.Index, Term: from.Term})
}

// receive reads a backup into a receiver of m, whose files are below dir.
func receive(ctx context.Context, m *fsm.Machine, from backup.State, dir string, progress func(int64)) (*fsm.Receiver, error) {
	if err := checkRoom(dir, &from.Header); err != nil {
		return nil, err
	}
	receiver, err := m.Receive()
	if err != nil {
		return nil, err
	}
	if err := copyState(ctx, receiver, from.From, progress); err != nil {
		return nil, errors.Join(err, receiver.Abort())
	}
	return receiver, nil
}

// checkRoom returns an error if the state of a backup is larger than the free space below dir.
// The size is what the file says of itself.
func checkRoom(dir string, h *backup.Header) error {
	free, err := diskspace.Free(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil // the state may still not fit: then writing it fails
	case err != nil:
		return fmt.Errorf("measure the free space of %s: %w", dir, err)
	case uint64(h.StateBytes) > free:
		return fmt.Errorf("the state in the backup needs %d bytes, and %d are free at %s: free some space, or use another directory", h.StateBytes, free, dir)
	}
	return nil
}

// copyState ends with an error when more arrives than the header of the backup gives: the
// Reader sees to that.
func copyState(ctx context.Context, to io.Writer, from io.Reader, progress func(int64)) error {
	buffer := make([]byte, 256<<10)
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			done += int64(n)
			if progress != nil {
				progress(done)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func countsOf(m *fsm.Machine) (c backup.Counts, err error) {
	v := m.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	t, err := v.Totals()
	if err != nil {
		return backup.Counts{}, err
	}
	return backup.Counts{Topics: t.Topics, Delayed: t.Delayed, Ready: t.Ready, Reserved: t.Reserved, Dead: t.Dead, Retained: t.Retained}, nil
}
