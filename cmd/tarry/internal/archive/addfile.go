package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// JobLine is a job as a line of a file: the members of POST /v1/jobs.
type JobLine struct {
	Topic       string            `json:"topic,omitzero"`
	ID          string            `json:"id,omitzero"`
	Delay       client.Duration   `json:"delay,omitzero"`
	DueAt       time.Time         `json:"due_at,omitzero"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"`
	TTR         client.Duration   `json:"ttr,omitzero"`
	Priority    *uint32           `json:"priority,omitzero"`
	MaxAttempts *uint32           `json:"max_attempts,omitzero"`
	IfExists    client.IfExists   `json:"if_exists,omitzero"`
	Backoff     *lineBackoff      `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	PushURL     string            `json:"push_url,omitzero"`
	client.Body
}

// lineBackoff is a Backoff, which may also be a list of seconds or one number.
type lineBackoff struct{ client.Backoff }

// MarshalJSON implements json.Marshaler.
func (b *lineBackoff) MarshalJSON() ([]byte, error) { return json.Marshal(b.Backoff) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (b *lineBackoff) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	switch in.PeekKind() {
	case '[':
		return json.UnmarshalDecode(in, &b.Delays)
	case '0':
		b.Delays = make([]client.Duration, 1)
		return json.UnmarshalDecode(in, &b.Delays[0])
	}
	return json.UnmarshalDecode(in, &b.Backoff)
}

// addProgress is how far a file is added.
type addProgress struct {
	Name string `json:"name"` // begins the ids of jobs whose line has none
	linePlace
	Added    int `json:"added"`
	Existing int `json:"existing"`
	Ended    int `json:"ended,omitzero"` // of Existing
}

// fileAdder adds the jobs of a file, a batch after the other.
type fileAdder struct {
	t        *cli.Terminal
	file     string // "-" is standard input
	size     int64
	defaults JobLine
	done     addProgress
	in       *lineReader
	check    bool // all lines are read, and none is noted as done
	faults   int  // of a check
	faulty   []lineText

	batch []client.NewJob
	lines []int // of the batch
	next  addProgress
}

// ImportFile adds the jobs of a file. When it was interrupted, it goes on where it was.
func ImportFile(ctx context.Context, t *cli.Terminal, file string, defaults JobLine) error {
	m := &fileAdder{t: t, file: file, defaults: defaults}
	source, err := m.open()
	if err != nil {
		return err
	}
	defer source.Close()
	if file != "-" {
		until, stop := cli.UntilSignal(ctx)
		defer stop()
		ctx = until
	}
	err = m.add(ctx)
	if file != "-" {
		err = end(ctx, t, cli.ProgressFile(file), m.done.Line > 0, err, fmt.Sprintf("%d jobs are added", m.done.Added+m.done.Existing))
	}
	if err != nil {
		return err
	}
	ended := ""
	if t.JSON {
		if m.done.Ended > 0 {
			ended = fmt.Sprintf(`,"ended":%d`, m.done.Ended)
		}
		return t.Out.Line(`{"added":%d,"existing":%d%s}`, m.done.Added, m.done.Existing, ended)
	}
	if m.done.Ended > 0 {
		ended = fmt.Sprintf(", %d of which have ended, so nothing runs (if_exists: replace_ended adds them anew)", m.done.Ended)
	}
	return t.Out.Line("%d added, %d were there already%s", m.done.Added, m.done.Existing, ended)
}

// open opens the file at the place up to which it is added.
func (m *fileAdder) open() (io.ReadCloser, error) {
	m.done.Name = "import-" + strings.ToLower(rand.Text()[:12])
	if m.file == "-" {
		m.in = newLineReader(m.t.In, cli.MaxJobLine)
		return io.NopCloser(m.t.In), nil
	}
	f, err := os.Open(m.file)
	if err != nil {
		return nil, err
	}
	if m.check {
		m.in = newLineReader(f, cli.MaxJobLine)
		return f, nil
	}
	if err := m.resume(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (m *fileAdder) resume(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	m.size = info.Size()
	found, err := cli.LoadProgress(cli.ProgressFile(m.file), &m.done)
	if err != nil {
		return err
	}
	if !found { // the ids must be the same after an interruption of the first batch
		if err := cli.SaveProgress(cli.ProgressFile(m.file), m.done); err != nil {
			return err
		}
	}
	m.in = newLineReader(f, cli.MaxJobLine)
	return goOn(m.t, m.in, m.done.linePlace, m.file, cli.ProgressFile(m.file), "add")
}

// add reads and adds what is left of the file.
func (m *fileAdder) add(ctx context.Context) error {
	meter := m.t.Meter(m.done.Added + m.done.Existing)
	defer meter.End()
	m.next = m.done
	first := m.next.Offset
	for {
		line, err := m.in.next()
		if err == io.EOF {
			return m.send(ctx)
		}
		if err == nil {
			err = m.take(line)
			if m.check && err != nil {
				m.fault(m.next.Line, err)
				if len(m.batch) == 0 {
					m.nameFaults()
				}
				continue
			}
		}
		if err != nil {
			return err
		}
		if len(m.batch) < cli.BatchJobs && m.next.Offset-first < cli.BatchBytes {
			continue
		}
		if err := m.send(ctx); err != nil {
			return err
		}
		first = m.next.Offset
		share := -1.0
		if m.size > 0 {
			share = float64(m.done.Offset) / float64(m.size)
		}
		meter.Show(m.t.Now(), m.done.Added+m.done.Existing, share)
	}
}

// take puts a line into the batch.
func (m *fileAdder) take(line []byte) error {
	m.next.linePlace = m.in.linePlace
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	j := m.defaults
	if err := json.Unmarshal(line, &j, json.RejectUnknownMembers(true)); err != nil {
		return cli.LineError{Err: fmt.Errorf("line %d%s", m.next.Line, lineFault(line, err, "job", "those of POST /v1/jobs (docs/http-reference.md)"))}
	}
	if j.ID == "" {
		j.ID = fmt.Sprintf("%s-%d", m.next.Name, m.next.Line)
	}
	a := client.NewJob{
		ID: j.ID, Topic: j.Topic, Body: j.Body, Delay: j.Delay.Duration, DueAt: j.DueAt, ExpiresAt: j.ExpiresAt, TTR: j.TTR.Duration,
		Priority: j.Priority, MaxAttempts: j.MaxAttempts, Headers: j.Headers, PushURL: j.PushURL, IfExists: j.IfExists,
	}
	if j.Backoff != nil {
		a.Backoff = &j.Backoff.Backoff
	}
	m.batch, m.lines = append(m.batch, a), append(m.lines, m.next.Line)
	return nil
}

// send adds the batch and notes it. A line that is refused ends it all: the jobs before
// and behind it in the batch are added, and are there already when the command is run again.
func (m *fileAdder) send(ctx context.Context) error {
	if len(m.batch) > 0 {
		results, err := m.t.Client.AddBatch(ctx, m.batch)
		if err != nil {
			return err
		}
		if err := m.count(results); err != nil {
			return err
		}
	}
	m.nameFaults()
	m.done, m.batch, m.lines = m.next, m.batch[:0], m.lines[:0]
	if m.file == "-" || m.check {
		return nil
	}
	return cli.SaveProgress(cli.ProgressFile(m.file), m.done)
}

func (m *fileAdder) count(results []client.AddResult) error {
	var refused refusals
	for i, r := range results {
		switch {
		case r.Err != nil && m.check:
			m.fault(m.lines[i], errors.New(strings.Replace(cli.Explain(r.Err), fmt.Sprintf("jobs[%d]", i), "", 1)))
		case r.Err != nil:
			refused.add(m.t, m.lines[i], i, r.Err)
		case r.Existing:
			m.next.Existing++
			if r.Ended {
				m.next.Ended++
			}
		default:
			m.next.Added++
		}
	}
	return refused.end(m.t, m.lines)
}
