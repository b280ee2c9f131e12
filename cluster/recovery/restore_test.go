package recovery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/fsm"
	"tarry/fsm/check"
	"tarry/fsm/view"
)

// backupOf makes a backup of a node with three jobs, whose header change may change.
func backupOf(t *testing.T, change func(h *backup.Header)) *backup.Reader {
	t.Helper()
	dir, s, err := openStopped(lostNode(t, 5, 5), false)
	require.NoError(t, err)
	stream, err := s.machine.OpenStream()
	require.NoError(t, err)
	counts, err := countsOf(s.machine)
	require.NoError(t, err)
	h := backup.Header{
		ClusterID: stream.ClusterID, NodeID: "n1", Index: stream.Index, Term: stream.Term, QueueTimeMS: stream.ClockMS,
		ClusterVersion: stream.Version, StateFormat: fsm.FormatVersion, StateBytes: stream.Size, Counts: counts,
	}
	change(&h)
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, h)
	require.NoError(t, err)
	_, err = io.Copy(struct{ io.Writer }{w}, stream)
	require.NoError(t, err)
	if err := w.Close(); h.StateBytes == stream.Size {
		require.NoError(t, err)
	}
	require.NoError(t, stream.Close())
	require.NoError(t, s.close())
	require.NoError(t, dir.Close())
	r, err := backup.NewReader(&file)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func restoreTo(t *testing.T, path string, r *backup.Reader) (Restored, error) {
	return Restore(t.Context(), r.State(), Target{DataDir: path, NodeID: "n1", Address: "127.0.0.1:7301", Now: time.UnixMilli(clockMS)})
}

func TestABackupIsVerifiedAndRestored(t *testing.T) {
	v, err := Verify(t.Context(), backupOf(t, func(*backup.Header) {}).State(), t.TempDir(), Progress{})
	require.NoError(t, err)
	require.EqualValues(t, 3, v.Counts.Jobs())
	require.NotEmpty(t, v.Digest)
	path := filepath.Join(t.TempDir(), "data")
	done, err := restoreTo(t, path, backupOf(t, func(*backup.Header) {}))
	require.NoError(t, err)
	require.Equal(t, v.Counts, done.Counts)
	require.NoError(t, startsIn(path))
}

// What verify refuses, restore refuses too, and no node starts in the directory.
func TestABackupThatIsNotVerifiedIsNotRestored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *backup.Header)
		says   string
	}{
		"other counts":       {func(h *backup.Header) { h.Counts.Ready++ }, "its header counts"},
		"another cluster":    {func(h *backup.Header) { h.ClusterID = "other" }, "its header counts"},
		"more than fits":     {func(h *backup.Header) { h.StateBytes = 1 << 60 }, "needs 1152921504606846976 bytes"},
		"more than it gives": {func(h *backup.Header) { h.StateBytes = 1000 }, "goes on after the 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			_, err := Verify(t.Context(), backupOf(t, c.change).State(), temp, Progress{})
			require.ErrorContains(t, err, c.says)
			left, err := filepath.Glob(filepath.Join(temp, "*"))
			require.NoError(t, err)
			require.Empty(t, left)

			path := filepath.Join(t.TempDir(), "data")
			_, err = restoreTo(t, path, backupOf(t, c.change))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, startsIn(path), "was interrupted")
			_, err = restoreTo(t, path, backupOf(t, func(*backup.Header) {}))
			require.NoError(t, err, "a good one is restored into the same directory")
			require.NoError(t, startsIn(path))
		})
	}
}

func TestACancelledVerificationLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	_, err := Verify(&endsAfter{t.Context(), 0}, backupOf(t, func(*backup.Header) {}).State(), temp, Progress{})
	require.ErrorIs(t, err, context.Canceled)
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A hundred million records take minutes to check, and nobody may have to wait for that.
func TestAReadOfTheStateEndsWithItsContext(t *testing.T) {
	dir, s, err := openStopped(lostNode(t, 5, 5), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(s.close(), dir.Close())) }()
	ctx, cancel := context.WithCancel(t.Context())
	err = reading(ctx, s.machine, func(v *view.View) error {
		require.NoError(t, check.Records(v, nil))
		cancel()
		for {
			if err := check.Records(v, nil); err != nil {
				return err
			}
		}
	})
	require.ErrorIs(t, err, context.Canceled)
}

// What is in a directory that a restore refuses may well start, or run.
func TestARefusedRestoreSaysNothingOfTheDirectory(t *testing.T) {
	_, err := restoreTo(t, lostNode(t, 5, 5), backupOf(t, func(*backup.Header) {}))
	require.ErrorContains(t, err, "is not empty")
	require.NotContains(t, err.Error(), "nothing can start")
}
