package wire

import (
	"fmt"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
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
	Command Opt[string] `json:"command"`
	AddRequest
	Token   Opt[string]  `json:"token"`
	Timeout Opt[float64] `json:"timeout"`
	Count   Opt[int64]   `json:"count"`
}

// FinishItem is one job that a reserve finishes first.
type FinishItem struct {
	ID    Opt[string] `json:"id"`
	Token Opt[string] `json:"token"`
}

type ReserveRequest struct {
	Topics   List[string, TopicsLimit]    `json:"topics"`
	Max      Opt[int64]                   `json:"max"`
	Wait     Opt[float64]                 `json:"wait"`
	TTR      Opt[float64]                 `json:"ttr"`
	Consumer Opt[string]                  `json:"consumer"`
	Finish   List[FinishItem, BatchLimit] `json:"finish"`
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
	if err := job.CheckReserve(r); err != nil {
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
	Topics    List[string, TopicsLimit] `json:"topics"`
	Credit    Opt[int64]                `json:"credit"`
	Max       Opt[int64]                `json:"max"`
	TTR       Opt[float64]              `json:"ttr"`
	Heartbeat Opt[float64]              `json:"heartbeat"`
	OnClose   Opt[string]               `json:"on_close"`
	Consumer  Opt[string]               `json:"consumer"`
}
