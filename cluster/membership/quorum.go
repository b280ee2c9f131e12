package membership

import (
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/job"
)

// checkRemoval returns an error if the live voters would not be a quorum of the remaining
// voters after a removal. A dead voter may be removed if the live ones are a quorum.
func checkRemoval(c raft.Configuration, alive map[raft.ServerID]bool, leaving raft.ServerID) error {
	voters, living, votes := 0, 0, false
	for _, id := range raftconfig.Voters(c) {
		switch {
		case id == leaving:
			votes = true
			continue
		case alive[id]:
			living++
		}
		voters++
	}
	name := raftconfig.NodeID(leaving)
	switch {
	case !votes:
		return nil
	case voters == 0:
		return job.Errorf(job.CodeQuorumWouldFail, "%s is the last voter; a cluster needs at least one", name)
	case living < raftconfig.Quorum(voters):
		return job.Errorf(job.CodeQuorumWouldFail, "removing %s leaves %s of which %s alive; %s needed",
			name, plural(voters, "voter"), isAre(living), isAre(raftconfig.Quorum(voters)))
	}
	return nil
}

func plural(n int, word string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func isAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
