package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// whatAStrangerLearns is the beginning of why a node without a valid invitation is not ready.
const whatAStrangerLearns = "the cluster takes in only nodes that show it a certificate, or an invitation"

// A cluster without TLS keeps strangers out, lets in one node for each invitation, and keeps
// what it has let in.
func TestAnInvitationLetsInOneNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	dir := t.TempDir()
	guest, err := c.Add("n4")
	require.NoError(t, err)
	second, err := c.Add("n5")
	require.NoError(t, err)
	for _, n := range c.Nodes() {
		n.Setenv("TARRY_AUDIT_LOG", filepath.Join(dir, n.ID+".audit"))
	}
	members := c.Nodes()[:3]
	c.start(members...)
	require.Contains(t, c.tarry("cluster", "members"), "\nadmission: open\n")
	require.Equal(t, "admission: invited\n", c.tarry("cluster", "admission", "invited"))
	require.Equal(t, "admission: invited\n", c.tarry("cluster", "admission"))
	c.until(func() error { // any node lists the members, by what it knows
		if out := c.tarry("cluster", "members", "--json"); !strings.Contains(out, `"admission":"invited"`) {
			return fmt.Errorf("the members are shown without the mode: %s", out)
		}
		return nil
	})

	require.NoError(t, guest.Start())
	c.awaitReason(guest, whatAStrangerLearns)
	c.awaitRefusal("n4", "it has no certificate that counts and no valid invitation: it shows none")

	// The invitation is for n4 alone, and good for one server.
	file := filepath.Join(dir, "n4.invitation")
	require.Contains(t, c.tarry("cluster", "invite", "--node", "n4", "-o", file), "its text is in "+file)
	require.Regexp(t, `(?m)^[0-9a-f]{8} +n4 +valid `, c.tarry("cluster", "invitations"))
	c.kill(guest)
	guest.Setenv("TARRY_JOIN_INVITATION_FILE", file)
	require.NoError(t, guest.Start())
	c.waitVoters(members[0], "n1", "n2", "n3", "n4")
	c.waitReady(guest)
	require.Regexp(t, `(?m)^([0-9a-f]{8}) +n4 +used .* n4\.`, c.tarry("cluster", "invitations"))
	c.requireEqualDigests(c.leader(), 4)

	second.Setenv("TARRY_JOIN_INVITATION_FILE", file)
	require.NoError(t, second.Start())
	c.awaitReason(second, whatAStrangerLearns)
	c.awaitRefusal("n5", "it has no certificate that counts and no valid invitation: invitation ")
	c.kill(second)

	// A member stays one, without the file too.
	require.NoError(t, os.Remove(file))
	c.kill(guest)
	c.start(guest)
	c.waitVoters(members[0], "n1", "n2", "n3", "n4")

	// One that was revoked lets nobody in.
	text := strings.TrimSpace(lastLine(c.tarry("cluster", "invite")))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	id := strings.Split(text, "_")[1]
	require.Equal(t, "revoked\n", c.tarry("cluster", "uninvite", id))
	require.NoError(t, second.Start())
	c.awaitReason(second, whatAStrangerLearns)
	c.awaitRefusal("n5", "it has no certificate that counts and no valid invitation: there is no invitation with the id ")
	c.kill(second)
	c.until(func() error { return c.Call(t.Context(), http.MethodGet, guest, "/readyz", nil) })

	c.awaitAudit(dir, []string{
		`"call":"PUT /v1/cluster/admission"`, `"call":"POST /v1/cluster/invitations"`, `"call":"DELETE /v1/cluster/invitations/{id}","resource":"` + id + `"`,
		`"via":"cluster","call":"join","resource":"node n4 by invitation `,
	}, text)
}

// awaitAudit waits until the audit logs in dir have parts of lines between them. None has the
// secret.
func (c *cluster) awaitAudit(dir string, parts []string, secret string) {
	c.t.Helper()
	c.until(func() error {
		files, err := filepath.Glob(filepath.Join(dir, "*.audit"))
		require.NoError(c.t, err)
		var all strings.Builder
		for _, file := range files {
			lines, err := os.ReadFile(file)
			require.NoError(c.t, err)
			all.Write(lines)
		}
		require.NotContains(c.t, all.String(), secret)
		for _, part := range parts {
			if !strings.Contains(all.String(), part) {
				return fmt.Errorf("no audit log has %s", part)
			}
		}
		return nil
	})
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// awaitRefusal waits until the leader has said why a node may not join. The cluster is healthy
// all the same.
func (c *cluster) awaitRefusal(node, why string) {
	c.t.Helper()
	c.until(func() error {
		events := c.tarry("cluster", "events", "--addr", c.leader().HTTP)
		for _, line := range strings.Split(events, "\n") {
			if strings.Contains(line, "a node may not join") && strings.Contains(line, node) && strings.Contains(line, why) {
				return nil
			}
		}
		return fmt.Errorf("the leader has the events %s", events)
	})
	c.waitHealthy(c.Nodes()[0])
}
