package membership

import (
	"github.com/hashicorp/raft"

	"tarry/job"
)

func quorum(voters int) int { return voters/2 + 1 }

// checkRemoval refuses a removal after which the voters that are alive would not
// be a quorum of the voters that are left. Removing a voter that is dead already
// is fine when the others suffice.
func checkRemoval(c raft.Configuration, alive map[raft.ServerID]bool, leaving raft.ServerID) error {
	voters, living, votes := 0, 0, false
	for _, s := range c.Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		if s.ID == leaving {
			votes = true
			continue
		}
		voters++
		if alive[s.ID] {
			living++
		}
	}
	name := nodeIDOf(string(leaving))
	switch {
	case !votes:
		return nil
	case voters == 0:
		return job.Errorf(job.CodeQuorumWouldFail, "%s is the last voter; a cluster cannot be without one", name)
	case living < quorum(voters):
		return job.Errorf(job.CodeQuorumWouldFail, "removing %s leaves %s of which %s alive; %s needed",
			name, plural(voters, "voter"), isAre(living), isAre(quorum(voters)))
	}
	return nil
}
