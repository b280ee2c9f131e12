package workload

import (
	"context"
	"net/http"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// importer imports jobs in batches, as tarry import does: with due times and attempts that they had
// elsewhere.
type importer struct{ *producer }

func newImporter(id int, c Config) client { return importer{makeProducer(id, c, c.Topics)} }

// importedJob is a line of an import.
type importedJob struct {
	newJob
	State    string    `json:"state"`
	DueAt    time.Time `json:"due_at"`
	Attempts int       `json:"attempts"`
}

func (p importer) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, bulkThink) {
		var jobs []importedJob
		for range minBatch + p.rand.IntN(maxBatch-minBatch) {
			jobs = append(jobs, p.makeImported())
		}
		for len(jobs) > 0 { // what was not acknowledged is imported again
			if jobs = p.send(context.WithoutCancel(ctx), jobs); len(jobs) > 0 && !sleep.For(ctx, retryPause) {
				return
			}
		}
	}
}

// makeImported makes a job that was due up to maxDelay ago or will be, and had attempts.
func (p importer) makeImported() importedJob {
	j := importedJob{newJob: *p.make(), State: "ready", Attempts: p.rand.IntN(3)}
	due := time.UnixMicro(p.rec.Now()).Add(j.delay())
	if j.Delay > 0 {
		j.State = "delayed"
	} else {
		due = due.Add(-between(p.rand, maxDelay))
	}
	j.DueAt, j.Delay = due.Truncate(time.Millisecond).UTC(), 0
	return j
}

// send imports jobs in one call and returns those that were not acknowledged.
func (p importer) send(ctx context.Context, jobs []importedJob) (again []importedJob) {
	node, invoke := p.node(), p.rec.Now()
	a, whole := p.call(ctx, http.MethodPost, "/v1/import", map[string]any{"jobs": jobs}, callTimeout)
	complete := p.rec.Now()
	for i, j := range jobs {
		var item answer
		if i < len(a.Results) {
			item = a.Results[i]
		}
		op := p.addOp(&j.newJob, item, itemOutcome(whole, item), node, invoke)
		op.Imported, op.Attempts, op.Due, op.Complete = true, j.Attempts, j.DueAt.UnixMicro(), complete
		op.Delay = max(0, time.Duration(op.Due-invoke)*time.Microsecond-clocksApart)
		p.rec.Record(op)
		if op.Outcome != history.OK {
			again = append(again, j)
		}
	}
	return again
}

// clocksApart is how far the clock of the recorder may be from that of the nodes, by which a due time
// is an instant and not a delay.
const clocksApart = 10 * time.Millisecond
