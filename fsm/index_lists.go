package fsm

import "tarry/job/jobpb"

// listKind is one of the lists that a topic has of its jobs. Each job is in exactly one
// of the first five; a job that may expire is also in listExpiring, listDeadline or both
// (rule_expiry.go). The order of each list is described at the type place.
//
// A list is not a state: ended jobs have two states and one list, and the last two have
// no state. listOfState and listKind.state convert between the two.
//
// The numbers are on disk: in the keys of the lists, and as the order of the counts and
// heads in topic records and in the state record.
type listKind uint8

const (
	listNone     listKind = 0 // no list
	listDelayed  listKind = 1
	listReady    listKind = 2
	listReserved listKind = 3
	listDead     listKind = 4
	listEnded    listKind = 5 // finished and deleted jobs that the topic retains
	listExpiring listKind = 6 // ready jobs, a second time
	listDeadline listKind = 7 // delayed and ready jobs with an expiry of their own, a second time

	listCount = 8 // the length of an array with an element for each listKind
	// stateLists is how many lists divide the jobs by state: all but the last two.
	stateLists = int(listEnded)
)

// listOfState returns the list of the jobs in a state; listNone if no job has that state.
func listOfState(s jobpb.State) listKind {
	switch s {
	case jobpb.State_STATE_DELAYED:
		return listDelayed
	case jobpb.State_STATE_READY:
		return listReady
	case jobpb.State_STATE_RESERVED:
		return listReserved
	case jobpb.State_STATE_DEAD:
		return listDead
	case jobpb.State_STATE_FINISHED, jobpb.State_STATE_DELETED:
		return listEnded
	}
	return listNone
}

// state returns the state of a job of the list. The phase matters only in listEnded.
func (l listKind) state(p phase) jobpb.State {
	switch l {
	case listDelayed:
		return jobpb.State_STATE_DELAYED
	case listReady, listExpiring:
		return jobpb.State_STATE_READY
	case listReserved:
		return jobpb.State_STATE_RESERVED
	case listDead:
		return jobpb.State_STATE_DEAD
	case listEnded:
		if p == phaseDeleted {
			return jobpb.State_STATE_DELETED
		}
		return jobpb.State_STATE_FINISHED
	}
	return jobpb.State_STATE_NONE
}

// waits reports whether the jobs of the list wait to be reserved.
func (l listKind) waits() bool { return l == listDelayed || l == listReady }

// byDue reports whether the list is ordered by (priority, due instant).
func (l listKind) byDue() bool { return l == listDelayed || l == listReady }

func (l listKind) String() string {
	switch l {
	case listDelayed:
		return "delayed"
	case listReady:
		return "ready"
	case listReserved:
		return "reserved"
	case listDead:
		return "dead"
	case listEnded:
		return "ended"
	case listExpiring:
		return "expiring"
	case listDeadline:
		return "deadline"
	}
	return "no list"
}
