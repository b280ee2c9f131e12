package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// send imports the batch and notes it. A job whose id another job has is named and left out.
// One that is refused for another reason ends the import: those beside it in the batch are
// imported, and are there already when the command is run again.
func (m *fileImport) send(ctx context.Context) error {
	if len(m.batch) == 0 {
		return nil
	}
	present, err := m.sameCluster(ctx)
	if err != nil {
		return err
	}
	m.leaveOut(present)
	for i := range m.batch {
		m.adapt(&m.batch[i])
	}
	switch {
	case len(m.batch) == 0:
	case m.flags.dry:
		err = m.compareJobs(ctx)
	default:
		err = m.importBatch(ctx)
	}
	if err != nil {
		return err
	}
	m.batch, m.lines, m.bytes = m.batch[:0], m.lines[:0], 0
	place := m.next.linePlace // the line that is being taken belongs to the next batch
	m.meter.Show(m.t.Now(), m.next.Report.jobs(), float64(place.Offset)/float64(max(m.size, 1)))
	return m.note()
}

// sameCluster returns the jobs of the batch that are in this cluster under the ids that a node
// gave them: the export is of this cluster. No other job has the same id and time.
func (m *fileImport) sameCluster(ctx context.Context) (present []bool, err error) {
	var ids []string
	var at []int
	for i := range m.batch {
		if strings.HasPrefix(m.batch[i].ID, "$") {
			ids, at = append(ids, m.batch[i].ID), append(at, i)
		}
	}
	present = make([]bool, len(m.batch))
	if len(ids) == 0 {
		return present, nil
	}
	found, err := m.t.Client.GetBatch(ctx, ids, false)
	if errors.Is(err, client.CodeForbidden) { // whoever may not read may import all the same
		return present, nil
	}
	for i := range found {
		present[at[i]] = found[i].Err == nil && found[i].CreatedAt.Equal(m.batch[at[i]].CreatedAt)
	}
	return present, err
}

// leaveOut takes the jobs that are there already out of the batch.
func (m *fileImport) leaveOut(present []bool) {
	kept := 0
	for i := range m.batch {
		if present[i] {
			m.next.Report.Existing.Jobs++
			continue
		}
		m.batch[kept], m.lines[kept] = m.batch[i], m.lines[i]
		kept++
	}
	m.batch, m.lines = m.batch[:kept], m.lines[:kept]
}

// adapt makes a job of the file one of the cluster. An id that a node made is not free to give:
// the new one is made of it and of the time of the add, so that it is the same for each import.
func (m *fileImport) adapt(j *client.ImportedJob) {
	if id, is := strings.CutPrefix(j.ID, "$"); is {
		j.ID = fmt.Sprintf("%simported-%s-%d", m.idPrefix(j.Topic), id, j.CreatedAt.UnixMilli())
	}
	if j.State != "dead" {
		j.DueAt = m.later(j.DueAt)
	}
}

// idPrefix returns how the ids in the namespace of a topic begin.
func (m *fileImport) idPrefix(topic string) string {
	for _, n := range m.prefixes {
		if strings.HasPrefix(topic, n.TopicPrefix) {
			return n.IDPrefix
		}
	}
	return ""
}

// importBatch imports the batch.
func (m *fileImport) importBatch(ctx context.Context) error {
	results, err := m.importAtRate(ctx)
	if err != nil {
		return err
	}
	var refused refusals
	for i, r := range results {
		switch {
		case r.Err == nil && r.Existing:
			m.next.Report.Existing.Jobs++
		case r.Err == nil:
			m.next.Report.Imported.Jobs++
		case errors.Is(r.Err, client.CodeIDConflict):
			m.next.Report.Different.Jobs++
			m.differs(m.lines[i], "%s", cli.Explain(r.Err))
		default:
			refused.add(m.t, m.lines[i], i, r.Err)
		}
	}
	return refused.end(m.t, m.lines)
}

// importAtRate waits while a namespace has used up its rate of adds.
func (m *fileImport) importAtRate(ctx context.Context) ([]client.AddResult, error) {
	for {
		results, err := m.t.Client.ImportBatch(ctx, m.batch)
		var e *client.Error
		if !errors.As(err, &e) || e.Code != client.CodeOverQuota || e.RetryAfter == 0 {
			return results, err
		}
		if !m.t.Retries.Swap(true) {
			m.t.Notes.Line("%s; the import waits", e.Message)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(e.RetryAfter):
		}
	}
}

// compareJobs counts what an import of the batch would do.
func (m *fileImport) compareJobs(ctx context.Context) error {
	ids := make([]string, len(m.batch))
	for i := range m.batch {
		ids[i] = m.batch[i].ID
	}
	found, err := m.t.Client.GetBatch(ctx, ids, true)
	if err != nil {
		return err
	}
	for i := range found {
		want, f := &m.batch[i], &found[i]
		switch {
		case cli.IsMissing(f.Err):
			m.next.Report.Imported.Jobs++
		case f.Err != nil:
			return f.Err
		case f.Topic != want.Topic || f.IsJSON() != want.IsJSON() || !bytes.Equal(f.Bytes(), want.Bytes()):
			m.next.Report.Different.Jobs++
			m.differs(m.lines[i], "id %.40q is taken by another job", want.ID)
		default:
			m.next.Report.Existing.Jobs++
		}
	}
	return nil
}
