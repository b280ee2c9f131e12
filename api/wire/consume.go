package wire

import (
	"fmt"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// FinishBody finishes a job, and may add others atomically.
type FinishBody struct {
	ChangeItem
	Then List[AddRequest, BatchLimit] `json:"then"`
}

// CommandRequest is a command of the protocol on POST /. Field names may be in any case.
// A client that sends one structure for all commands may include fields that the command
// does not use; they have no effect.
type CommandRequest struct {
	Command Opt[string] `json:"command" required:"command" help:"What to do: add, pop, finish or delete, in any case."`
	AddRequest
	Token   Opt[string]  `json:"token"`
	Timeout Opt[float64] `json:"timeout" help:"How long pop waits for a job, in seconds." limit:"wait"`
	Count   Opt[int64]   `json:"count" help:"How many jobs pop gives at most." limit:"reserve"`
}

// FinishItem is one job that a reserve finishes first.
type FinishItem struct {
	ID    Opt[string] `json:"id"`
	Token Opt[string] `json:"token"`
}

type ReserveRequest struct {
	Topics   List[string, TopicsLimit]    `json:"topics" required:"topics" help:"Names of topics, 1 to 1000." limit:"name"`
	Max      Opt[int64]                   `json:"max" help:"How many jobs at most; 1 unless given." limit:"reserve"`
	Wait     Opt[float64]                 `json:"wait" help:"How long to wait for a job, in seconds." limit:"wait"`
	TTR      Opt[float64]                 `json:"ttr"`
	Consumer Opt[string]                  `json:"consumer"`
	Finish   List[FinishItem, BatchLimit] `json:"finish" help:"Reserved jobs that end first, in one step with the reserve: at most 1000."`
}

func (q *ReserveRequest) Check() (*jobpb.Reserve, time.Duration, error) {
	r := &jobpb.Reserve{Topics: q.Topics.V, MaxBytes: job.MaxReserveBytes, Consumer: q.Consumer.V}
	var err error
	if r.Max, err = Within("max", q.Max.Or(1), job.MaxReserve); err != nil {
		return nil, 0, err
	}
	if q.TTR.Set {
		if r.TtrMs, err = job.TTRMillis("ttr", q.TTR.V); err != nil {
			return nil, 0, err
		}
	}
	wait, err := job.Millis("wait", q.Wait.V, job.MaxWait)
	if err != nil {
		return nil, 0, err
	}
	return r, time.Duration(wait) * time.Millisecond, CheckReserve(r)
}

// CheckReserve checks a Reserve, and the names of its topics: the queue takes any, but a
// client should hear of one that no topic can have.
func CheckReserve(r *jobpb.Reserve) error {
	if err := oplog.CheckReserve(job.Newest(), r); err != nil {
		return err
	}
	for i, topic := range r.Topics {
		if err := job.CheckTopic(fmt.Sprintf("topics[%d]", i), topic); err != nil {
			return err
		}
	}
	return nil
}

type StreamRequest struct {
	Topics    List[string, TopicsLimit] `json:"topics" help:"Names of topics, 1 to 1000." limit:"name"`
	Credit    Opt[int64]                `json:"credit"`
	Max       Opt[int64]                `json:"max" help:"How many jobs the stream gives at most; no limit unless given." limit:"count"`
	TTR       Opt[float64]              `json:"ttr"`
	Heartbeat Opt[float64]              `json:"heartbeat"`
	OnClose   Opt[string]               `json:"on_close"`
	Consumer  Opt[string]               `json:"consumer"`
}

type ReservedJobs struct {
	Finished []ChangeResult `json:"finished,omitzero" help:"One result for each item of finish, in their order; absent without finish."`
	Jobs     []Reserved     `json:"jobs"`
}

type Reserved struct {
	ID            string            `json:"id"`
	Seq           uint64            `json:"seq"`
	Topic         string            `json:"topic"`
	Token         string            `json:"token"`
	Attempts      uint64            `json:"attempts" help:"Attempts so far, this one included."`
	Priority      uint64            `json:"priority"`
	DueAt         Time              `json:"due_at"`
	ReservedUntil Time              `json:"reserved_until"`
	TTR           Seconds           `json:"ttr"`
	Headers       map[string]string `json:"headers,omitzero"`
	PushURL       string            `json:"push_url,omitzero"`
	Body          Any               `json:"body,omitzero"`
	BodyBase64    string            `json:"body_base64,omitzero"`
}

type CommandReply struct {
	Error       string   `json:"error"`
	ID          string   `json:"id"`
	Value       Any      `json:"value,omitzero"`
	ValueBase64 string   `json:"value_base64,omitzero"`
	Token       string   `json:"token,omitzero"`
	Jobs        []Popped `json:"jobs,omitzero"`
}

type Popped struct {
	ID          string `json:"id"`
	Value       Any    `json:"value,omitzero"`
	ValueBase64 string `json:"value_base64,omitzero"`
	Token       string `json:"token"`
}
