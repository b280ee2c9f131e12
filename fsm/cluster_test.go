package fsm

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// checkAdmission compares who may become a member in memory, and what is public of it, with the
// store.
func checkAdmission(m *Machine) error {
	stored, err := record.ReadAdmission(m.store.db)
	if err != nil {
		return err
	}
	if !proto.Equal(m.admission, stored) || !proto.Equal(m.Admission(), stored) {
		return errors.New("the admission in memory is not that in the store")
	}
	return nil
}

func (r *rig) invitation(id string) *jobpb.Invitation { return invitationOf(r.m.Admission(), id) }

func TestAnInvitationIsUsedByOneServer(t *testing.T) {
	r := newRig(t, Options{})
	before := r.m.Admission()
	put := r.one(opInvite("i", "", 5000))
	require.Equal(t, jobpb.Code_OK, put.Code)
	require.Equal(t, r.now+5000, put.DueMs)
	require.Empty(t, before.Invitations, "what readers have does not change")
	require.True(t, r.one(opInvite("i", "", 9000)).Existing, "a repeated request")
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opInvite("i", "n1", 5000)).Code)

	r.now += 10
	require.Equal(t, jobpb.Code_OK, r.one(opEndInvitation("i", "n1.a")).Code)
	for range 2 {
		v := r.invitation("i")
		require.Equal(t, "n1.a", v.ServerId)
		require.Equal(t, r.now, v.UsedMs)
		r.reopen()
	}
	require.True(t, r.one(opEndInvitation("i", "n1.a")).Existing, "the next leader records it again")
	for _, other := range []string{"n1.b", "n2.a"} {
		res := r.one(opEndInvitation("i", other))
		require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code)
		require.Equal(t, `invitation "i" was used by server "n1.a"`, res.Message)
	}
	r.check()
}

func TestAnInvitationOfANodeIsForItAlone(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opInvite("i", "n1", 5000), opInvite("dotted", "n1.x", 5000))
	for _, other := range []string{"n2.a", "n1", "n1.x.a"} {
		require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opEndInvitation("i", other)).Code, other)
	}
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opEndInvitation("dotted", "n1.a")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opEndInvitation("i", "n1.a")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opEndInvitation("dotted", "n1.x.a")).Code)
}

func TestAnInvitationExpiresByTheClusterClock(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opInvite("i", "", 5000))
	r.now += 5000
	res := r.one(opEndInvitation("i", "n1.a"))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code)
	require.Equal(t, `invitation "i" has expired`, res.Message)
	require.NotNil(t, r.invitation("i"), "it is listed until the next one is made")
	r.one(opInvite("j", "", 5000))
	require.Nil(t, r.invitation("i"))
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opEndInvitation("i", "n1.a")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opEndInvitation("j", "")).Code, "it is revoked")
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opEndInvitation("j", "n1.a")).Code)
	r.check()
}

func TestTheInvitationsAreBounded(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxInvitations: 3}})
	for i := range 3 {
		require.Equal(t, jobpb.Code_OK, r.one(opInvite(fmt.Sprint("i", i), "", 5000)).Code)
	}
	r.one(opEndInvitation("i1", "n1.a"))
	res := r.one(opInvite("more", "", 5000))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code)
	require.Contains(t, res.Message, "there are 3 invitations that have not expired, which is the limit")
	r.one(opEndInvitation("i0", ""))
	require.Equal(t, jobpb.Code_OK, r.one(opInvite("more", "", 5000)).Code)
	r.now += 5000
	require.Equal(t, jobpb.Code_OK, r.one(opInvite("again", "", 5000)).Code)
	require.Len(t, r.m.Admission().Invitations, 1)
	r.check()
}

func TestTheModeOfAdmissionIsKept(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, jobpb.AdmissionMode_ADMISSION_OPEN, r.m.Admission().Mode)
	for range 2 {
		require.Equal(t, jobpb.Code_OK, r.one(opAdmission(jobpb.AdmissionMode_ADMISSION_INVITED)).Code)
		r.reopen()
		require.Equal(t, jobpb.AdmissionMode_ADMISSION_INVITED, r.m.Admission().Mode)
	}
	v := r.m.View()
	defer v.Close()
	a, err := v.Read(&jobpb.Read{What: &jobpb.Read_Admission{Admission: &jobpb.Empty{}}})
	require.NoError(t, err)
	require.Equal(t, jobpb.AdmissionMode_ADMISSION_INVITED, a.Admission.Mode)
}

// The clock was far ahead when an invitation was made: it is not valid for all that time.
func TestAClockResetLeavesAnInvitationItsTime(t *testing.T) {
	r := newRig(t, Options{})
	r.now += resetDay
	r.one(opInvite("i", "", 5000))
	r.now += 1000
	r.do(opInvite("used", "", 5000), opEndInvitation("used", "n1.a"))
	require.Equal(t, jobpb.Code_OK, r.one(opReset(rigStart+1, 0)).Code)
	require.Equal(t, int64(rigStart+1+4000), r.invitation("i").ExpiresMs)
	require.Equal(t, int64(rigStart+1), r.invitation("i").CreatedMs)
	require.Equal(t, int64(rigStart+1), r.invitation("used").UsedMs)
	r.check()
}

// What was used since the backup is not used in it.
func TestARestoredStateHasNoInvitations(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opSetCluster("old"), opInvite("i", "", 5000), opAdmission(jobpb.AdmissionMode_ADMISSION_INVITED))
	require.NoError(t, r.m.EnterCluster(restored(r, 0)))
	r.check()
	r.reopen()
	require.Empty(t, r.m.Admission().Invitations)
	require.Equal(t, jobpb.AdmissionMode_ADMISSION_INVITED, r.m.Admission().Mode, "the cluster does not open by itself")
}

// checkRemoved compares the removed nodes in memory, and those that are public, with the
// store.
func checkRemoved(m *Machine) error {
	stored, err := record.ReadRemoved(m.store.db)
	if err != nil {
		return err
	}
	if !maps.Equal(m.removed, stored) || !maps.Equal(m.RemovedNodes(), stored) {
		return errors.New("the removed nodes in memory are not those in the store")
	}
	return nil
}

func TestANodeIsRemovedUntilItIsAdmitted(t *testing.T) {
	r := newRig(t, Options{})
	before := r.m.RemovedNodes()
	require.Equal(t, jobpb.Code_OK, r.one(opRemove("n1.a", "n1")).Code)
	at := r.now
	require.Empty(t, before, "what readers have does not change")
	require.True(t, r.m.Forgotten("n1.a"))
	r.now += 5
	r.one(opRemove("n1.b", "n1")) // the other server of the same node
	for range 2 {
		require.Equal(t, map[string]int64{"n1": at}, r.m.RemovedNodes())
		r.reopen()
	}
	require.Equal(t, jobpb.Code_OK, r.one(opAdmit("n1")).Code)
	require.Empty(t, r.m.RemovedNodes())
	require.True(t, r.m.Forgotten("n1.a"), "its earlier servers do not return")
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opAdmit("n1")).Code)
	r.check()
}

// Dropping the oldest would let a node in; so there are no more removals.
func TestTheRemovedNodesAreBounded(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxRemovedNodes: 3}})
	for i := range 3 {
		require.Equal(t, jobpb.Code_OK, r.one(opRemove(fmt.Sprint("n", i, ".a"), fmt.Sprint("n", i))).Code)
	}
	res := r.one(opRemove("n3.a", "n3"))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code)
	require.Contains(t, res.Message, "3 nodes were removed and not admitted again, which is the limit")
	require.False(t, r.m.Forgotten("n3.a"), "a refused removal changes nothing")
	require.Equal(t, jobpb.Code_OK, r.one(opRemove("n2.b", "n2")).Code, "another server of a node that is removed")
	require.Equal(t, jobpb.Code_OK, r.one(opForget("n3.a")).Code, "a server whose node stays")
	require.Equal(t, jobpb.Code_OK, r.one(opAdmit("n0")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opRemove("n4.a", "n4")).Code)
	r.check()
}

// A cluster can begin with a node that was removed from the one before; the others stay out.
func TestANewClusterBeginsWithANodeThatWasRemoved(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opSetCluster("old"), opRemove("n1.a", "n1"), opRemove("n2.a", "n2"))
	c := restored(r, 0)
	c.NodeID = "n2"
	require.NoError(t, r.m.EnterCluster(c))
	r.check()
	r.reopen()
	require.Contains(t, r.m.RemovedNodes(), "n1")
	require.NotContains(t, r.m.RemovedNodes(), "n2")
}
