package record

import "tarry/job/jobpb"

// List is one of the lists that a topic has of its jobs. Each job is in exactly one
// of the first five; a job that may expire is also in ListExpiring, ListDeadline or both
// (fsm/expiry.go). The order of each list is described at the type place.
//
// A list is not a state: ended jobs have two states and one list, and the last two have
// no state. ListOfState and List.state convert between the two.
//
// The numbers are on disk: in the keys of the lists, and as the order of the counts and
// heads in topic records and in the state record.
type List uint8

const (
	ListNone     List = 0 // no list
	ListDelayed  List = 1
	ListReady    List = 2
	ListReserved List = 3
	ListDead     List = 4
	ListEnded    List = 5 // finished and deleted jobs that the topic retains
	ListExpiring List = 6 // ready jobs, a second time
	ListDeadline List = 7 // delayed and ready jobs with an expiry of their own, a second time

	ListCount = 8 // the length of an array with an element for each List
	// StateLists is how many lists divide the jobs by state: all but the last two.
	StateLists = int(ListEnded)
)

// ListOfState returns the list of the jobs in a state; ListNone if no job has that state.
func ListOfState(s jobpb.State) List {
	switch s {
	case jobpb.State_STATE_DELAYED:
		return ListDelayed
	case jobpb.State_STATE_READY:
		return ListReady
	case jobpb.State_STATE_RESERVED:
		return ListReserved
	case jobpb.State_STATE_DEAD:
		return ListDead
	case jobpb.State_STATE_FINISHED, jobpb.State_STATE_DELETED:
		return ListEnded
	}
	return ListNone
}

// State returns the state of a job of the list. The phase matters only in ListEnded.
func (l List) State(p phase) jobpb.State {
	switch l {
	case ListDelayed:
		return jobpb.State_STATE_DELAYED
	case ListReady, ListExpiring:
		return jobpb.State_STATE_READY
	case ListReserved:
		return jobpb.State_STATE_RESERVED
	case ListDead:
		return jobpb.State_STATE_DEAD
	case ListEnded:
		if p == PhaseDeleted {
			return jobpb.State_STATE_DELETED
		}
		return jobpb.State_STATE_FINISHED
	}
	return jobpb.State_STATE_NONE
}

// Waits reports whether the jobs of the list wait to be reserved.
func (l List) Waits() bool { return l == ListDelayed || l == ListReady }

// ByDue reports whether the list is ordered by (priority, due instant).
func (l List) ByDue() bool { return l == ListDelayed || l == ListReady }

func (l List) String() string {
	switch l {
	case ListDelayed:
		return "delayed"
	case ListReady:
		return "ready"
	case ListReserved:
		return "reserved"
	case ListDead:
		return "dead"
	case ListEnded:
		return "ended"
	case ListExpiring:
		return "expiring"
	case ListDeadline:
		return "deadline"
	}
	return "no list"
}
