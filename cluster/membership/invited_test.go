package membership

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/cluster/membership/memberpb"
	"tarry/internal/invitation"
	"tarry/job"
	"tarry/job/jobpb"
)

// changeAdmission is called with f.mu held. It does what the state machine does, except for the
// clock: "invited", "invitation ID NODE KEY EXPIRES" with "-" for any node, and "use ID SERVER".
func (f *fsm) changeAdmission(verb, args string) any {
	next := &jobpb.Admission{}
	if f.admits != nil {
		next = proto.CloneOf(f.admits)
	}
	words := strings.Fields(args)
	switch verb {
	case "invited":
		next.Mode = jobpb.AdmissionMode_ADMISSION_INVITED
	case "invitation":
		key, err := base64.StdEncoding.DecodeString(words[2])
		if err != nil {
			return err
		}
		expires, err := strconv.ParseInt(words[3], 10, 64)
		if err != nil {
			return err
		}
		v := &jobpb.Invitation{Id: words[0], NodeId: words[1], PublicKey: key, ExpiresMs: expires}
		if v.NodeId == "-" {
			v.NodeId = ""
		}
		next.Invitations = append(next.Invitations, v)
	case "use":
		for _, v := range next.Invitations {
			switch {
			case v.Id != words[0]:
				continue
			case v.ServerId != "" && v.ServerId != words[1]:
				return job.Errorf(job.CodeConditionFailed, "it was used by another server")
			}
			v.ServerId = words[1]
			f.admits = next
			return nil
		}
		return job.Errorf(job.CodeNotFound, "there is no such invitation")
	}
	f.admits = next
	return nil
}

func (f *fsm) Admission() *jobpb.Admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.admits
}

// ownInvitation is Config.Invitation of a run.
func (n *node) ownInvitation() func() (invitation.Secret, error) {
	if n.invitation == nil {
		return nil
	}
	return func() (invitation.Secret, error) { return *n.invitation, nil }
}

// invite makes an invitation for a node; "-": for any.
func (w *testCluster) invite(id, forNode string) *invitation.Secret {
	return w.inviteUntil(id, forNode, time.Now().Add(time.Hour))
}

func (w *testCluster) inviteUntil(id, forNode string, end time.Time) *invitation.Secret {
	w.t.Helper()
	s, err := invitation.Generate(rand.Reader, id)
	require.NoError(w.t, err)
	cmd := "invitation " + id + " " + forNode + " " + base64.StdEncoding.EncodeToString(s.PublicKey()) + " " + strconv.FormatInt(end.UnixMilli(), 10)
	eventually(w.t, "the invitation is in the log", func() bool { return w.leader().propose(cmd) == nil })
	return &s
}

// startInvited starts three nodes that take in only servers with an invitation.
func startInvited(t *testing.T) (*testCluster, []*node) {
	w := newTestCluster(t)
	nodes := w.trio()
	for _, n := range nodes {
		n.plainCalls = true
		n.start()
	}
	w.voters("n1", "n2", "n3")
	eventually(t, "the mode is in the log", func() bool { return w.leader().propose("invited") == nil })
	return w, nodes
}

// stranger returns a node that seeks the cluster of nodes.
func (w *testCluster) stranger(id string, nodes []*node, s *invitation.Secret) *node {
	n := w.node(id, 0, nodes[0].gossipAddr(), nodes[1].gossipAddr())
	n.invitation, n.plainCalls = s, true
	return n
}

// refused waits until a node knows that it is not taken in, and the leader why. The cluster is
// healthy all the same.
func (w *testCluster) refused(n *node, why string) {
	w.t.Helper()
	eventually(w.t, n.id+" knows what is in its way", func() bool { return n.Refusal() == errUninvited.Error() })
	want := "it has no certificate that counts and no valid invitation: " + why
	eventually(w.t, "the leader knows why: "+want, func() bool {
		l := w.leader().leadership.Load()
		if l == nil || l.uninvited.Load() == nil {
			return false
		}
		return strings.HasPrefix((*l.uninvited.Load())[n.serverID()], want)
	})
	require.False(w.t, w.leader().reports("cannot be taken in"))
	require.False(w.t, w.leader().Configured(n.serverID()))
}

func TestAnInvitationLetsInOneServer(t *testing.T) {
	t.Parallel()
	w, nodes := startInvited(t)
	stranger := w.stranger("n4", nodes, nil)
	stranger.start()
	w.refused(stranger, "it shows none")

	s := w.invite("i", "-")
	stranger.stop()
	stranger.invitation = s
	stranger.start()
	w.voters("n1", "n2", "n3", "n4")
	require.Empty(t, stranger.Refusal())
	used := false
	for _, n := range nodes { // the one that led then
		used = used || n.used.Load() != nil && *n.used.Load() == "i n4"
	}
	require.True(t, used, "the use is reported")

	second := w.stranger("n5", nodes, s)
	second.start()
	w.refused(second, `invitation "i" was used by server "n4.1"`)

	// A member needs it no more, and not at all once it has been lost.
	stranger.stop()
	stranger.invitation = nil
	stranger.start()
	w.voters("n1", "n2", "n3", "n4")
}

// Who has lost its data is another server.
func TestAWipedNodeNeedsAnotherInvitation(t *testing.T) {
	t.Parallel()
	w, nodes := startInvited(t)
	n4 := w.stranger("n4", nodes, w.invite("i", "n4"))
	n4.start()
	w.voters("n1", "n2", "n3", "n4")
	n4.stop()
	n4.wipe()
	n4.start()
	w.refused(n4, `invitation "i" was used by server "n4.1"`)
	require.True(t, w.leader().Configured("n4.1"), "nothing is removed for a stranger")
	n4.stop()
	n4.invitation = w.inviteUntil("old", "n4", time.Now().Add(-time.Second))
	n4.start()
	w.refused(n4, `invitation "old" has expired`)
	require.True(t, w.leader().Configured("n4.1"), "nothing is removed for one that comes too late")
	n4.stop()
	n4.invitation = w.invite("j", "n4")
	n4.start()
	w.voters("n1", "n2", "n3", "n4")
	require.True(t, w.leader().Configured("n4.2"))
}

func TestWhatIsWrongWithAnInvitation(t *testing.T) {
	t.Parallel()
	w, nodes := startInvited(t)
	forged, err := invitation.Generate(rand.Reader, "i")
	require.NoError(t, err)
	w.invite("i", "-")
	other := w.invite("other", "n9")
	unknown, err := invitation.Generate(rand.Reader, "unknown")
	require.NoError(t, err)
	n4, n5, n6 := w.stranger("n4", nodes, &forged), w.stranger("n5", nodes, other), w.stranger("n6", nodes, &unknown)
	for _, n := range []*node{n4, n5, n6} {
		n.start()
	}
	w.refused(n4, `its proof for invitation "i" is wrong`)
	w.refused(n5, `invitation "other" is for node "n9"`)
	w.refused(n6, `there is no invitation with the id "unknown"`)
	for _, v := range w.leader().fsm.Admission().Invitations {
		require.Empty(t, v.ServerId, "who is refused uses nothing")
	}
}

// The leader failed between the two steps: the use is in the log, and the server in no
// configuration.
func TestTheNextLeaderTakesInTheServerThatUsedAnInvitation(t *testing.T) {
	t.Parallel()
	w, nodes := startInvited(t)
	s := w.invite("i", "-")
	eventually(t, "the use is in the log", func() bool { return w.leader().propose("use i n4.1") == nil })
	thief := w.stranger("n5", nodes, s)
	thief.start()
	w.refused(thief, `invitation "i" was used by server "n4.1"`)
	n4 := w.stranger("n4", nodes, s)
	n4.start()
	eventually(t, "it is taken in", func() bool { return w.leader().Configured("n4.1") })
}

// Where all calls are over TLS the leader has seen a certificate.
func TestACertificateIsEnough(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	eventually(t, "the mode is in the log", func() bool { return w.leader().propose("invited") == nil })
	n4 := w.node("n4", 0, nodes[0].gossipAddr(), nodes[1].gossipAddr())
	n4.start()
	w.voters("n1", "n2", "n3", "n4")
}

func TestWhoProvesAnInvitationToWhom(t *testing.T) {
	s, err := invitation.Generate(rand.Reader, "i")
	require.NoError(t, err)
	ask := func() *memberpb.ProveRequest {
		return &memberpb.ProveRequest{ServerId: "n9.a", ClusterId: "c", Invited: "n1.x", Nonce: make([]byte, invitation.NonceBytes)}
	}
	with := func(c *Config) {
		c.Invitation = func() (invitation.Secret, error) { return s, nil }
	}
	m := bare(t, with)
	require.Equal(t, "n1.x", m.cfg.ServerID)
	resp := m.prove(ask())
	require.Equal(t, "i", resp.Invitation)
	p := invitation.Proof{Cluster: "c", Leader: "n9.a", Server: "n1.x", Address: m.cfg.ClusterAddr, Nonce: ask().Nonce}
	require.True(t, invitation.Verify(s.PublicKey(), p, resp.Signature))

	for name, change := range map[string]func(*memberpb.ProveRequest){
		"another server": func(q *memberpb.ProveRequest) { q.Invited = "n1.y" },
		"a short nonce":  func(q *memberpb.ProveRequest) { q.Nonce = q.Nonce[1:] },
	} {
		q := ask()
		change(q)
		require.True(t, proto.Equal(&memberpb.ProveResponse{}, m.prove(q)), name)
	}
	for name, change := range map[string]func(*Config){
		"no invitation":   func(c *Config) { c.Invitation = nil },
		"a broken file":   func(c *Config) { c.Invitation = func() (invitation.Secret, error) { return s, context.Canceled } },
		"a member":        func(c *Config) { c.HasState = true },
		"another cluster": func(c *Config) { c.Facts = &fsm{cluster: "d"} },
	} {
		require.True(t, proto.Equal(&memberpb.ProveResponse{}, bare(t, with, change).prove(ask())), name)
	}
}

// A forged gossip record has the address of who forged it; the holder signs its own.
func TestAProofIsForTheAddressOfItsServer(t *testing.T) {
	s, err := invitation.Generate(rand.Reader, "i")
	require.NoError(t, err)
	m := bare(t, func(c *Config) {
		c.Facts = &fsm{admits: &jobpb.Admission{Invitations: []*jobpb.Invitation{{Id: "i", PublicKey: s.PublicKey(), ExpiresMs: time.Now().Add(time.Hour).UnixMilli()}}}}
	})
	genuine := invitation.Proof{Cluster: "c", Leader: "n1.x", Server: "n4.a", Address: "n4:7301", Nonce: make([]byte, invitation.NonceBytes)}
	resp := &memberpb.ProveResponse{Invitation: "i", Signature: s.Sign(genuine)}
	require.NoError(t, m.checkProof(genuine, resp))
	forged := genuine
	forged.Address = "evil:7301"
	require.ErrorContains(t, m.checkProof(forged, resp), "is wrong")
}
