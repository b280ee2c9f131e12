package workload

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// mover changes all jobs of editors' topics at once: it moves a topic's jobs to
// another, purges those in one state, and kicks the dead.
type mover struct {
	*caller
	config Config
	rand   *rand.Rand
}

func newMover(id int, c Config) client {
	return &mover{caller: newCaller(id, c), config: c, rand: random(c, id)}
}

// sweepEvery is the longest time between two sweeps.
const sweepEvery = 4 * time.Second

func (m *mover) run(ctx context.Context) {
	defer m.close()
	for sleep.For(ctx, between(m.rand, sweepEvery)) {
		n := m.rand.IntN(len(m.config.Edited))
		from, to := m.config.Edited[n], m.config.Edited[(n+1)%len(m.config.Edited)]
		path := "/v1/topics/" + url.PathEscape(from)
		// A sweep is not repeated: it would also change jobs that were added since.
		switch m.rand.IntN(6) {
		case 0, 1:
			state := []string{"dead", "delayed", "ready"}[m.rand.IntN(3)]
			m.recorded(context.WithoutCancel(ctx), http.MethodPost, path+"/purge", map[string]any{"state": state, "all": true},
				history.Op{Kind: history.Purge, Topic: from, State: state})
		case 2, 3:
			m.kickSome(context.WithoutCancel(ctx), path, from, to)
		default:
			m.recorded(context.WithoutCancel(ctx), http.MethodPost, path+"/move", map[string]string{"to": to},
				history.Op{Kind: history.MoveTopic, Topic: from, To: to})
		}
	}
}

// kickRate is how many jobs per second become due after a kick with a rate.
const kickRate = 5

// kickSome kicks the dead jobs of a topic: those with a certain error, with a rate, into
// another topic, or several of these.
func (m *mover) kickSome(ctx context.Context, path, from, to string) {
	op := history.Op{Kind: history.KickTopic, Topic: from}
	ask := map[string]any{"all": true}
	how := 1 + m.rand.IntN(7)
	if how&1 != 0 {
		op.Reason = oneOf(m.rand, reasons)
		ask["filter"] = map[string]string{"reason": op.Reason}
	}
	if how&2 != 0 {
		op.Rate = kickRate
		ask["rate"] = op.Rate
	}
	if how&4 != 0 {
		op.To = to
		ask["to_topic"] = to
	}
	m.recorded(ctx, http.MethodPost, path+"/kick", ask, op)
}

// moveOne moves a job of editors to another of their topics.
func (e editor) moveOne(ctx context.Context, j *newJob) {
	to := oneOf(e.rand, e.topics)
	e.recorded(ctx, http.MethodPost, "/v1/jobs/"+url.PathEscape(j.ID)+"/move", map[string]string{"to": to},
		history.Op{Kind: history.Move, ID: j.ID, Topic: j.Topic, To: to})
}
