package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

type reserveRequest struct {
	Topics   list[string, topicsLimit] `json:"topics"`
	Max      opt[int64]                `json:"max"`
	Wait     opt[float64]              `json:"wait"`
	TTR      opt[float64]              `json:"ttr"`
	Consumer opt[string]               `json:"consumer"`
}

func (q *reserveRequest) check() (*jobpb.Reserve, time.Duration, error) {
	topics, err := checkTopics(q.Topics.v)
	if err != nil {
		return nil, 0, err
	}
	if err := job.CheckConsumer("consumer", q.Consumer.v); err != nil {
		return nil, 0, err
	}
	r := &jobpb.Reserve{Topics: topics, MaxBytes: job.MaxReserveBytes, Consumer: q.Consumer.v}
	if r.Max, err = within("max", q.Max.or(1), job.MaxReserve); err != nil {
		return nil, 0, err
	}
	if q.TTR.set {
		if r.TtrMs, err = job.TTRMillis("ttr", q.TTR.v); err != nil {
			return nil, 0, err
		}
	}
	wait, err := job.Millis("wait", q.Wait.v, job.MaxWait)
	return r, time.Duration(wait) * time.Millisecond, err
}

// checkTopics checks the topics to reserve from.
func checkTopics(topics []string) ([]string, error) {
	if n := len(topics); n == 0 || n > job.MaxReserveTopics {
		return nil, job.Invalid("topics", "has %d names; it takes 1 to %d", n, job.MaxReserveTopics)
	}
	for i, topic := range topics {
		if err := job.CheckTopic(fmt.Sprintf("topics[%d]", i), topic); err != nil {
			return nil, err
		}
	}
	return topics, nil
}

func within(field string, v, limit int64) (uint32, error) {
	if v < 1 || v > limit {
		return 0, job.Invalid(field, "is %d; it must be between 1 and %d", v, limit)
	}
	return uint32(v), nil
}

func (s *server) reserve(x *exchange) error {
	var q reserveRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	r, wait, err := q.check()
	if err != nil {
		return err
	}
	return s.handOut(x, r, wait, func(jobs []*jobpb.Reserved) {
		x.json.success()
		x.json.openList("jobs")
		for _, j := range jobs {
			x.json.open()
			x.json.reserved(j)
			x.json.shut()
		}
		x.json.shutList()
		x.json.shut()
	})
}

// reserved adds the members of a job that is handed out.
func (w *writer) reserved(j *jobpb.Reserved) {
	w.text("id", j.Id)
	w.number("seq", j.Seq)
	w.text("topic", j.Topic)
	w.text("token", tokenOf(j))
	w.number("attempts", uint64(j.Attempts))
	w.number("priority", uint64(j.Priority))
	w.instant("due_at", j.DueMs)
	w.instant("reserved_until", j.ReservedUntilMs)
	w.seconds("ttr", j.TtrMs)
	w.headers(j.Extras)
	w.body("body", j.BodyKind, j.Body)
}

// handOut reserves jobs, writes the answer and sends it. Jobs that the client
// did not get, because it hung up first, go back at once.
func (s *server) handOut(x *exchange, r *jobpb.Reserve, wait time.Duration, write func([]*jobpb.Reserved)) error {
	jobs, err := s.await(x, r, wait)
	if err != nil {
		return err
	}
	if len(jobs) > 0 && x.r.Context().Err() != nil {
		s.giveBack(x, jobs)
		return x.r.Context().Err()
	}
	if err := x.claimAnswer(jobs); err != nil {
		s.giveBack(x, jobs)
		return err
	}
	write(jobs)
	if len(jobs) == 0 {
		return nil
	}
	if err := x.sendNow(); err != nil {
		s.giveBack(x, jobs)
	}
	return nil
}

// claimAnswer takes room for an answer: until a slow client has read it, it is
// held beside the requests.
func (x *exchange) claimAnswer(jobs []*jobpb.Reserved) error {
	return x.claim(answerBytes(jobs))
}

func answerBytes(jobs []*jobpb.Reserved) (n int64) {
	for _, j := range jobs {
		n += int64(len(j.Body)) + answerOverhead
	}
	return n
}

// answerOverhead is about what an answer says of a job besides its body.
const answerOverhead = 512

// await reserves. A wait that began before the node drains, and is cut short by
// it, found nothing. Later ones fail with not_applied, so that consumers go to
// another node instead of asking here in a loop.
func (s *server) await(x *exchange, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	ctx, cancel := x.timeout(wait + s.Timeout)
	defer cancel()
	before := s.Draining()
	jobs, err := s.Queue.Reserve(ctx, r, wait)
	if err != nil && !before && s.Draining() && job.CodeOf(err) == job.CodeNotApplied {
		return nil, nil
	}
	return jobs, err
}

// sendNow sends the answer and hands it to the network, so that the caller
// learns of a broken connection.
func (x *exchange) sendNow() error {
	if err := x.send(); err != nil {
		return err
	}
	return flush(x.w)
}

func flush(w http.ResponseWriter) error {
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// giveBack returns jobs that no consumer saw, with the attempt taken back. When
// that fails they come back by themselves at the end of their time to run.
func (s *server) giveBack(x *exchange, jobs []*jobpb.Reserved) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), giveBackTimeout)
	defer cancel()
	ops := make([]*jobpb.Op, len(jobs))
	for i, j := range jobs {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{
			Ref:         &jobpb.Ref{Seq: j.Seq, Generation: j.Generation},
			Undelivered: true, ReservedMs: j.ReservedUntilMs - j.TtrMs,
		}}}
	}
	if _, err := doOps(ctx, s.Queue, ops); err != nil {
		s.Logger.Warn("jobs of a consumer that hung up could not be given back; they return when their time to run is over",
			"jobs", len(jobs), "first", jobs[0].Id, "error", err)
	}
}

const giveBackTimeout = 5 * time.Second
