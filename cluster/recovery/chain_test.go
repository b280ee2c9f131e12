package recovery

import (
	"bytes"
	"crypto/rand"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/fsm"
	"tarry/job"
)

// backupSince makes a backup of a stopped node's state, incremental if there is a base.
func backupSince(t *testing.T, m *fsm.Machine, base *job.BackupBase) []byte {
	t.Helper()
	var files *fsm.Base
	if base != nil {
		files = &fsm.Base{Store: base.Store, Files: base.Files}
	}
	s, err := m.OpenBackup(files, rand.Text())
	require.NoError(t, err)
	counts, err := countsOf(m)
	require.NoError(t, err)
	h := backup.Header{
		ClusterID: s.ClusterID, NodeID: "n1", Index: s.Index, Term: s.Term, QueueTimeMS: s.ClockMS,
		ClusterVersion: s.Version, StateFormat: fsm.FormatVersion, StateBytes: s.Size, Counts: counts,
	}
	require.Equal(t, base != nil, s.Incremental)
	if base != nil {
		h.BaseID, h.BaseName, h.BaseTakenMS = base.ID, base.Name, base.TakenMS
	}
	var file bytes.Buffer
	w, err := backup.NewWriter(&file, h)
	require.NoError(t, err)
	_, err = io.Copy(struct{ io.Writer }{w}, s)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, s.Close())
	return file.Bytes()
}

func readerOf(t *testing.T, file []byte) *backup.Reader {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// What an incremental backup and its base make is what a whole backup is, and a base with another
// id is not taken for it.
func TestAnIncrementalBackupIsVerifiedWithItsBase(t *testing.T) {
	dir, s, err := openStopped(lostNode(t, 5, 5), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	defer func() { require.NoError(t, s.close()) }()
	whole := backupSince(t, s.machine, nil)
	id, err := backup.ReadID(bytes.NewReader(whole), int64(len(whole)))
	require.NoError(t, err)
	base, err := BaseOf(readerOf(t, whole), id, "whole.backup")
	require.NoError(t, err)
	text := base.Append(nil)
	again, err := job.ParseBackupBase(string(text))
	require.NoError(t, err)
	require.Equal(t, base, again)
	top := backupSince(t, s.machine, again)

	want, err := Verify(t.Context(), readerOf(t, whole).State(), t.TempDir(), Progress{})
	require.NoError(t, err)
	from, err := Compose(readerOf(t, top).State(), Checked(readerOf(t, whole), id))
	require.NoError(t, err)
	require.Empty(t, from.BaseID)
	got, err := Verify(t.Context(), from, t.TempDir(), Progress{})
	require.NoError(t, err)
	require.Equal(t, want, got)

	other, err := Compose(readerOf(t, top).State(), Checked(readerOf(t, whole), "another"))
	require.NoError(t, err)
	_, err = Verify(t.Context(), other, t.TempDir(), Progress{})
	require.ErrorContains(t, err, "the base has the id "+id)
	_, err = Verify(t.Context(), readerOf(t, top).State(), t.TempDir(), Progress{})
	require.ErrorContains(t, err, "it needs its base")
}
