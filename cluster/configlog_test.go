package cluster

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// addAs adds a job to a group in the name of a token.
func addAs(n *Node, group int, token, id string) error {
	op := add(id, "t", 0)
	op.Principal = token
	rs, err := n.groups[group].shard.Do(context.Background(), []*jobpb.Op{op})
	if err == nil {
		err = job.ResultError(rs[0])
	}
	return err
}

func TestAllGroupsFollowTheConfigGroup(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 3, 2)
	token := func(id, topics string, verbs ...string) *jobpb.Op {
		rule, err := auth.ParseRule([]string{topics}, verbs)
		require.NoError(t, err)
		made := &jobpb.Token{Id: id, Hash: bytes.Repeat([]byte{'h'}, 32), Rules: []*jobpb.Rule{rule}}
		return &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: made}}, Principal: job.SystemPrincipal}
	}
	enforce := &jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: &jobpb.AuthSettings{Mode: jobpb.AuthMode_AUTH_ENFORCE}}}, Principal: job.SystemPrincipal}
	doIn(t, c.nodes[0], 0, token("root", "*", "admin"), token("worker", "*", "add"), enforce)
	for group := 1; group <= 2; group++ {
		c.eventually(func() bool { return addAs(c.nodes[1], group, "worker", idIn(group, 2, "a")) == nil },
			fmt.Sprint("a job of the token is in group ", group))
		c.eventually(func() bool { return job.CodeOf(addAs(c.nodes[1], group, "", idIn(group, 2, "b"))) == job.CodeForbidden },
			fmt.Sprint("group ", group, " refuses who has no token"))
	}
	doIn(t, c.nodes[0], 0, &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "worker"}}, Principal: job.SystemPrincipal})
	at := c.groupLeader(0).shard.machine.ConfigPosition()
	for group := 1; group <= 2; group++ {
		c.eventually(func() bool {
			return c.groupLeader(group).groups[group].shard.machine.ConfigGroup().Position == at
		}, fmt.Sprint("group ", group, " has the revocation"))
		c.eventually(func() bool {
			return job.CodeOf(addAs(c.nodes[2], group, "worker", idIn(group, 2, "c"))) == job.CodeNotApplied
		},
			fmt.Sprint("group ", group, " refuses the token"))
	}
}
