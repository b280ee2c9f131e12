package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// streamer is a consumer that gets its jobs over a stream.
type streamer struct {
	*consumer
	streams uint64 // opened so far
}

func newStreamer(id int, c Config) client {
	s := &streamer{consumer: newConsumer(id, c).(*consumer)}
	s.together = false
	return s
}

// The sizes of streams. They are short, so that many begin and end.
const (
	maxCredit   = 8
	maxStreamed = 200
	// silence is how long a stream may send nothing. It has a heartbeat every second.
	silence = 4 * time.Second
)

// event is one line of a stream.
type event struct {
	Event string `json:"event"`
	delivered
}

func (s *streamer) run(ctx context.Context) {
	defer s.close()
	for {
		if ended := s.stream(ctx); !ended {
			s.move()
		}
		s.finishLate(context.WithoutCancel(ctx))
		if !sleep.For(ctx, between(s.rand, 2*retryPause)) {
			return
		}
	}
}

// stream opens one stream and works on its jobs until it ends. It reports whether the node
// ended it properly.
func (s *streamer) stream(ctx context.Context) bool {
	s.streams++
	number, credit := uint64(s.id+1)<<32|s.streams, 1+s.rand.IntN(maxCredit)
	query := url.Values{"heartbeat": {"1"}, "credit": {fmt.Sprint(credit)}, "max": {fmt.Sprint(1 + s.rand.IntN(maxStreamed))}}
	topics := s.config.consumed()
	returns := s.rand.IntN(4) == 0
	if returns {
		query.Set("on_close", "release")
		topics = s.config.Topics // a job with a backoff would be redelivered without it
	}
	query.Set("topics", strings.Join(topics, ","))
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()

	node, invoke := s.node(), s.rec.Now()
	lost := history.Op{Kind: history.Deliver, Outcome: history.Unknown, Client: s.id, Node: node, Invoke: invoke}
	req, err := http.NewRequestWithContext(open, http.MethodGet, "http://"+node+"/v1/stream?"+query.Encode(), nil)
	if err != nil {
		panic(err) // the address of a node is none
	}
	resp, err := s.http.Do(req)
	if err != nil {
		if lost.Complete = s.rec.Now(); neverSent(err) {
			lost.Outcome = history.Fail
		}
		s.rec.Record(lost)
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		lost.Outcome, lost.Complete = history.Fail, s.rec.Now()
		s.rec.Record(lost)
		return false
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		quiet.Reset(silence)
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			break // interrupted
		}
		switch e.Event {
		case "job":
			op := deliverOp(e.delivered)
			op.Client, op.Node, op.Invoke, op.Complete, op.Stream, op.Credit = s.id, node, invoke, s.rec.Now(), number, credit
			s.rec.Record(op)
			if returns {
				// The node releases the job when it detects that this client has
				// disconnected, which may happen at any time.
				s.returned(e.delivered, node)
			}
			s.work(context.WithoutCancel(ctx), []delivered{e.delivered})
			quiet.Reset(silence)
		case "bye":
			return true
		}
	}
	lost.Complete = s.rec.Now()
	s.rec.Record(lost)
	return false
}

func (s *streamer) returned(j delivered, node string) {
	op := reservationOp(history.Release, history.Unknown, j)
	op.Client, op.Node, op.Invoke, op.Complete = s.id, node, s.rec.Now(), s.rec.Now()
	s.rec.Record(op)
}
