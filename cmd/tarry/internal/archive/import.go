package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const importText = `Puts into a cluster what tarry export --all wrote, from this or any earlier release: namespaces,
settings and pauses of topics, schedules, and jobs with their attempts, errors and due times. The
cluster may have others. The whole FILE is read and checked before anything is changed.

What the cluster already has is counted and left as it is, so the command can be run again, and
after an interruption it goes on. What it has with other values is named and left as it is, too,
and the exit code is 6: a topic, namespace or schedule with another definition, or a job with the
same id and another topic or body. A job that was finished since is imported again, unless its
topic retains it: run it before consumers do.

Ids that a node made ($0-15) become others (imported-0-15-...), always the same. The secrets of push
targets are not in a file, so the targets are left out and named: set them again with tarry topic
set. A topic of which jobs have a push_url needs its target before the jobs: import the topics with
--only topics, set the targets, then import the rest. With tokens it needs the verbs add and manage on the topics, push for targets, and admin for
namespaces. The cluster version must be at least 2.`

// maxExportLine is the longest line of an export, in bytes: a body of which each byte is escaped.
const maxExportLine = 26 << 20

// importFlags is the command line of tarry import.
type importFlags struct {
	only    string
	fromNow bool
	dry     bool
}

// importProgress is how far an import is.
type importProgress struct {
	Query string `json:"query"` // what was asked for
	linePlace
	ShiftMS int64         `json:"shift_ms"` // by which due times are later
	Report  importReports `json:"report"`
}

// importReports say what became of the lines, by kind.
type importReports struct {
	Imported    exportCounts `json:"imported"`
	Existing    exportCounts `json:"existing"`
	Different   exportCounts `json:"different"`              // left as they are in the cluster
	NeedSecrets []string     `json:"need_secrets,omitempty"` // topics whose push target was left out
}

// fileImport imports a file.
type fileImport struct {
	t     *cli.Terminal
	file  string
	size  int64
	kinds map[string]bool // of lines to import
	flags importFlags
	total exportCounts
	in    *lineReader
	meter *cli.Meter
	done  importProgress
	next  importProgress // with the batch

	batch    []client.ImportedJob
	lines    []int // of the batch
	bytes    int64 // of the batch's lines
	prefixes []client.Namespace
	named    int // differences that were named
}

func ImportCommand() *cobra.Command {
	c := cli.NewCommand("import", "put an export of everything into a cluster", "FILE", importText, "tarry import all.ndjson --dry-run", 1, 1)
	var f importFlags
	c.Flags.StringVar(&f.only, "only", "", "import only these `kinds` of lines, separated by commas: topics, namespaces, schedules, jobs")
	c.Flags.BoolVar(&f.fromNow, "from-now", false, "make due times and ends of pauses later by the time since the export")
	c.Flags.BoolVar(&f.dry, "dry-run", false, "check the file, compare it with the cluster, and change nothing")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		m := &fileImport{t: t, file: args[0], flags: f, kinds: make(map[string]bool)}
		if err := m.choose(f.only); err != nil {
			return err
		}
		return m.run(ctx)
	})
}

// choose reads --only.
func (m *fileImport) choose(only string) error {
	for _, k := range kinds {
		m.kinds[k.kind] = only == ""
	}
	for name := range strings.SplitSeq(only, ",") {
		found := only == ""
		for _, k := range kinds {
			if k.name == name {
				m.kinds[k.kind], found = true, true
			}
		}
		if !found {
			return cli.Usagef("--only: %q is none of topics, namespaces, schedules and jobs", name)
		}
	}
	return nil
}

func (m *fileImport) run(ctx context.Context) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	f, err := os.Open(m.file)
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := m.check(f)
	if err != nil {
		return fmt.Errorf("%s: %w", m.file, err)
	}
	if err := m.resume(f, head); err != nil {
		return err
	}
	m.meter = m.t.Meter(m.done.Report.jobs())
	err = m.everyLine(ctx)
	m.meter.End()
	for _, topic := range m.next.Report.NeedSecrets {
		m.t.Notes.Line("topic %s: its push target is left out, because an export has no secrets: tarry topic set %s --push URL --push-secret-file FILE", topic, topic)
	}
	if m.flags.dry {
		err = cli.Interrupted(ctx, err, "nothing was changed")
	} else {
		err = end(ctx, m.t, m.progressFile(), m.done.Line > 0, err, fmt.Sprintf("%d of %d lines are imported", m.done.Line, m.total.lines()+2))
	}
	if err != nil {
		return err
	}
	return m.report()
}

// progressFile is not that of an add or an export of the same file.
func (m *fileImport) progressFile() string { return cli.ProgressFile(m.file + ".import") }

// check reads the whole file, so that one that was cut or has a wrong line changes nothing.
func (m *fileImport) check(f *os.File) (head exportHead, err error) {
	info, err := f.Stat()
	if err != nil {
		return head, err
	}
	if !info.Mode().IsRegular() {
		return head, errors.New("it must be a regular file, because it is read twice")
	}
	m.size = info.Size()
	in := newLineReader(f, maxExportLine)
	first, err := in.next()
	if err == io.EOF {
		return head, cli.LineError{Err: errors.New("it is empty")}
	}
	if err == nil {
		head, err = decodeHead(first)
	}
	if err != nil {
		return head, err
	}
	for {
		line, err := in.next()
		if err == io.EOF {
			return head, cli.LineError{Err: fmt.Errorf("line %d is the last one, but not of the type end: the file was cut, or its export was interrupted. Run the same tarry export again to go on", in.Line)}
		}
		if err != nil {
			return head, err
		}
		kind, v, err := decodeExported(line)
		if err != nil {
			return head, cli.LineError{Err: fmt.Errorf("line %d%w", in.Line, err)}
		}
		if kind != kindEnd {
			*m.total.of(kind)++
			continue
		}
		if said := v.(*exportEnd).exportCounts; said != m.total {
			return head, cli.LineError{Err: fmt.Errorf("line %d counts %v, but the file has %v: lines are missing, or there are too many", in.Line, said, m.total)}
		}
		if _, err := in.next(); err != io.EOF {
			return head, cli.LineError{Err: fmt.Errorf("line %d is of the type end, but more lines follow", in.Line)}
		}
		return head, nil
	}
}

// resume goes back to the start of the file, or to where an interrupted import was.
func (m *fileImport) resume(f *os.File, head exportHead) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	m.in = newLineReader(f, maxExportLine)
	query := fmt.Sprintf("only=%s from-now=%t", m.flags.only, m.flags.fromNow)
	m.done.Query = query
	if m.flags.fromNow {
		m.done.ShiftMS = max(m.t.Now().Sub(head.At).Milliseconds(), 0)
	}
	if m.flags.dry {
		return nil
	}
	found, err := cli.LoadProgress(m.progressFile(), &m.done)
	switch {
	case err != nil:
		return err
	case !found:
		return cli.SaveProgress(m.progressFile(), m.done)
	case m.done.Query != query:
		return fmt.Errorf("%s is of an import with other flags; remove it to start anew", m.progressFile())
	}
	return goOn(m.t, m.in, m.done.linePlace, m.file, m.progressFile(), "import")
}

// everyLine imports the lines that are left.
func (m *fileImport) everyLine(ctx context.Context) error {
	var err error
	if m.prefixes, err = client.Collect(m.t.Client.Namespaces().List(ctx)); err != nil {
		return err
	}
	m.next = m.done
	for {
		line, err := m.in.next()
		if err == io.EOF {
			return m.send(ctx)
		}
		if err != nil {
			return err
		}
		if m.in.Line > 1 {
			kind, v, err := decodeExported(line)
			if err == nil && m.kinds[kind] {
				err = m.take(ctx, v, int64(len(line)))
			}
			if err != nil {
				return err
			}
		}
		m.next.linePlace = m.in.linePlace
		if len(m.batch) == 0 && m.next.Line-m.done.Line >= cli.BatchJobs {
			if err := m.note(); err != nil {
				return err
			}
		}
	}
}

// take imports a line. Jobs are kept for a batch.
func (m *fileImport) take(ctx context.Context, v any, size int64) error {
	if j, is := v.(*exportedJob); is {
		if len(m.batch) == cli.BatchJobs || m.bytes+size > cli.BatchBytes && len(m.batch) > 0 {
			if err := m.send(ctx); err != nil {
				return err
			}
		}
		m.batch, m.lines, m.bytes = append(m.batch, j.ImportedJob), append(m.lines, m.in.Line), m.bytes+size
		return nil
	}
	if err := m.send(ctx); err != nil {
		return err
	}
	var outcome importOutcome
	var err error
	kind := ""
	switch l := v.(type) {
	case *topicLine:
		kind = kindTopic
		outcome, err = m.topic(ctx, l)
	case *namespaceLine:
		kind = kindNamespace
		outcome, err = m.namespace(ctx, l)
	case *scheduleLine:
		kind = kindSchedule
		outcome, err = m.schedule(ctx, l)
	}
	switch {
	case err != nil:
		m.t.Notes.Line("line %d: %s", m.in.Line, cli.Explain(err))
		return cli.Exit(cli.ExitCode(err))
	case outcome != outcomeNone:
		*m.next.Report.of(outcome).of(kind)++
	}
	return nil
}

// note makes durable how far the import is.
func (m *fileImport) note() error {
	m.done = m.next
	if m.flags.dry {
		return nil
	}
	return cli.SaveProgress(m.progressFile(), m.done)
}

// differs names something that the cluster has with other values.
func (m *fileImport) differs(line int, format string, args ...any) {
	if m.named++; m.named <= cli.ShownFaults {
		m.t.Notes.Line("line %d: %s; it stays as it is", line, fmt.Sprintf(format, args...))
	}
}

// importOutcome is what became of a line.
type importOutcome int

const (
	outcomeNone importOutcome = iota // it was not a change
	outcomeImported
	outcomeExisting
	outcomeDifferent
)

func (o importOutcome) or(other importOutcome) importOutcome {
	if o == outcomeNone {
		return other
	}
	return o
}

func (r *importReports) of(o importOutcome) *exportCounts {
	switch o {
	case outcomeExisting:
		return &r.Existing
	case outcomeDifferent:
		return &r.Different
	}
	return &r.Imported
}

func (r *importReports) jobs() int { return r.Imported.Jobs + r.Existing.Jobs + r.Different.Jobs }

func (c exportCounts) lines() int { return c.Topics + c.Namespaces + c.Schedules + c.Jobs }

// report prints what became of the file.
func (m *fileImport) report() error {
	r := &m.next.Report
	if err := m.printReport(r); err != nil {
		return err
	}
	if r.Different.lines() > 0 {
		return cli.Exit(cli.ExitRefused)
	}
	return nil
}

func (m *fileImport) printReport(r *importReports) error {
	if m.t.JSON {
		return m.t.PrintJSON(struct {
			importReports
			DryRun bool `json:"dry_run,omitzero"`
		}{*r, m.flags.dry})
	}
	var rows [][]string
	for _, k := range kinds {
		rows = append(rows, []string{k.name, fmt.Sprint(*r.Imported.of(k.kind)), fmt.Sprint(*r.Existing.of(k.kind)), fmt.Sprint(*r.Different.of(k.kind))})
	}
	head := []string{"", "IMPORTED", "THERE ALREADY", "DIFFERENT"}
	if m.flags.dry {
		head[1] = "TO IMPORT"
	}
	return m.t.Table(head, rows)
}

// later returns a time of the file as it is in the cluster.
func (m *fileImport) later(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(time.Duration(m.done.ShiftMS) * time.Millisecond)
}
