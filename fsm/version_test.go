package fsm

import (
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/job"
	"tarry/job/jobpb"
)

func opRaise(to uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: to}}}
}

func opMigrate(most uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Migrate{Migrate: &jobpb.Migrate{Max: most}}}
}

func TestAFreshStateHasTheFirstVersion(t *testing.T) {
	r := newRig(t, Options{})
	require.EqualValues(t, job.FirstVersion, r.m.Version())
	r.one(opMark("")) // for the clock
	digest := r.digest()
	for _, to := range []uint32{0, job.FirstVersion} {
		r.one(opRaise(to))
	}
	require.EqualValues(t, job.FirstVersion, r.m.Version())
	require.Equal(t, digest, r.digest())
}

// setVersion writes a version into a state, as a release that runs it does.
func setVersion(t *testing.T, r *rig, version uint32) {
	require.NoError(t, r.m.store.db.Set(record.KeyVersion, record.AppendVersion(nil, version, nil), pebble.NoSync))
}

func TestNewerStateIsRefused(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	setVersion(t, r, job.MaxVersion+1)
	require.NoError(t, r.m.Close())
	_, err := Open(rigDir, r.o)
	var version *job.VersionError
	require.ErrorAs(t, err, &version)
	require.Equal(t, job.VersionError{Version: job.MaxVersion + 1, Runs: job.ReleaseVersions()}, *version)
	require.ErrorContains(t, err, "start a newer release")

	// The attempt changed nothing.
	db, err := r.m.dir.Open(r.m.dir.Live())
	require.NoError(t, err)
	require.NoError(t, db.Delete(record.KeyVersion, pebble.NoSync))
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())
	r.open()
	require.NotNil(t, r.job(1))
}

func TestNewerStreamIsRefusedAtItsHeader(t *testing.T) {
	from, to := newRig(t, Options{}), newRig(t, Options{})
	fill(from, 20)
	dir := from.m.dir.CheckpointPath()
	_, err := from.m.checkpoint(dir)
	require.NoError(t, err)
	newer, err := store.OpenArchive(from.fs, dir, store.Header{Index: from.index, Term: 1, Version: job.MaxVersion + 1})
	require.NoError(t, err)
	rec, err := to.m.Receive()
	require.NoError(t, err)
	_, err = io.Copy(rec, newer)
	require.ErrorAs(t, err, new(*job.VersionError))
	names, err := to.fs.List(to.fs.PathJoin(rigDir, "gen-000002.tmp"))
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, rec.Abort())
	require.NoError(t, newer.Close())
}
