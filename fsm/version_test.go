package fsm

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func opRaise(to uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: to}}}
}

func opMigrate(max uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Migrate{Migrate: &jobpb.Migrate{Max: max}}}
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

// setVersion writes a version into a state, as a release that runs it would.
func setVersion(t *testing.T, r *rig, version uint32) {
	require.NoError(t, r.m.store.db.Set(keyVersion, appendVersion(nil, version, nil), pebble.Sync))
}

func TestAStateOfANewerVersionIsRefusedWithTheWayOn(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	setVersion(t, r, job.MaxVersion+1)
	require.NoError(t, r.m.Close())
	_, err := Open(rigDir, r.o)
	var version *job.VersionError
	require.ErrorAs(t, err, &version)
	require.Equal(t, job.VersionError{Version: job.MaxVersion + 1, Runs: job.ReleaseVersions()}, *version)
	require.ErrorContains(t, err, "start a newer release")

	// Nothing was changed by the attempt.
	path, err := currentGeneration(r.fs, rigDir)
	require.NoError(t, err)
	s, err := openStore(path, r.o)
	require.NoError(t, err)
	require.NoError(t, s.db.Delete(keyVersion, pebble.Sync))
	require.NoError(t, s.close())
	r.open()
	require.NotNil(t, r.job(1))
}

func TestAStreamOfANewerVersionIsRefusedBeforeItHasCome(t *testing.T) {
	from, to := newRig(t, Options{}), newRig(t, Options{})
	fill(from, 20)
	data, _ := archive(from)
	n, err := checkPreamble(data)
	require.NoError(t, err)
	m, err := decodeManifest(data[archivePreambleLen : archivePreambleLen+n])
	require.NoError(t, err)
	require.EqualValues(t, job.FirstVersion, m.version)

	m.version = job.MaxVersion + 1
	rec, err := to.m.Receive()
	require.NoError(t, err)
	_, err = rec.Write(m.appendHead(nil))
	require.ErrorAs(t, err, new(*job.VersionError))
	require.NoError(t, rec.Abort())
}
