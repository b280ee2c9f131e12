package groupcommit

import (
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// Complete receives the outcome of a request or a batch: one result per operation, or
// an error. It is called once, on any goroutine, and must not block.
type Complete = func(results []*jobpb.Result, err error)

// Request is a run of operations that are proposed together.
type Request struct {
	Ops   []byte // framed by oplog.AppendOp
	Count int
	// Callers is how many clients wait for it, as far as its node can tell.
	Callers int
	Adds    bool // there is an add among them
	// Tenant is whose they are; empty: nobody's. The requests of one tenant keep their order,
	// and those of several take turns.
	Tenant string
	Local  bool // only the leader itself may propose them (oplog.Kinds)
	// HoldUntil is when the request fails if no leader has accepted it, Deadline when
	// it is too late to send it.
	HoldUntil, Deadline time.Time
	Done                Complete
}

// Batch is the content of one Raft entry, or of one message to the leader.
type Batch struct {
	Bytes, Count int // of all operations

	callers  int
	requests []*Request
}

func (b *Batch) add(r *Request) {
	b.requests = append(b.requests, r)
	b.Bytes += len(r.Ops)
	b.Count += r.Count
	b.callers += r.Callers
}

// AppendOps appends the operations of the batch to data.
func (b *Batch) AppendOps(data []byte) []byte {
	for _, r := range b.requests {
		data = append(data, r.Ops...)
	}
	return data
}

// Route sends batches to the present leader.
type Route struct {
	// Send sends a batch to the log; nil: there is no leader. It must not block for the
	// commit: it calls complete when the outcome is known. The outcome is
	// leaderrpc.ErrNotLeader if nothing was applied and another leader may accept the batch.
	Send func(b *Batch, complete Complete)
	// Forwards reports whether the leader is another node.
	Forwards bool
}

func errBusy() *job.Error {
	return &job.Error{Code: job.CodeOverloaded, RetryAfter: time.Second,
		Message: "too much is waiting to be committed on this node; try again later"}
}

// CheckSize returns an error if a run of operations of so many bytes does not fit in an
// entry.
func CheckSize(bytes int) error {
	if bytes <= MaxEntryBytes {
		return nil
	}
	return job.Errorf(job.CodeTooLarge, "the request takes %d bytes in the log; it may take %d at most", bytes, MaxEntryBytes)
}

// errDeposed is the outcome of a local request once this node no longer leads.
func errDeposed() *job.Error { return job.NotApplied("this node does not lead any more") }

func errStopping() *job.Error { return job.NotApplied("the node is stopping") }
