package archive

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"tarry/api"
	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
	"tarry/job/jobpb"
)

// CheckFile names each line of a file that no node would take. It calls no node: the lines go to the
// API in this process, whose queue stores nothing.
func CheckFile(ctx context.Context, t *cli.Terminal, file string, defaults JobLine) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api.New(api.Options{
		Queue: noQueue{}, Operator: noOperator{}, MaxBodyBytes: job.HardMaxBodyBytes,
		CheckPush: func(string, string) error { return nil },
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()
	node, err := client.New([]string{listener.Addr().String()})
	if err != nil {
		return err
	}
	defer node.Close()

	of := *t
	of.Client = node
	m := &fileAdder{t: &of, file: file, defaults: defaults, check: true}
	source, err := m.open()
	if err != nil {
		return err
	}
	defer source.Close()
	err = m.add(ctx)
	m.nameFaults()
	if err != nil {
		return err
	}
	if m.faults > 0 {
		t.Notes.Line("%d of %d jobs cannot be added", m.faults, m.faults+m.done.Added)
		return cli.Exit(cli.ExitRefused)
	}
	if t.JSON {
		return t.Out.Line(`{"valid":%d}`, m.done.Added)
	}
	return t.Out.Line("%d jobs can be added", m.done.Added)
}

// fault notes a line that is no job. Only a check goes on after it.
func (m *fileAdder) fault(line int, err error) {
	m.faults++
	m.faulty = append(m.faulty, lineText{line, strings.TrimPrefix(cli.Explain(err), fmt.Sprintf("line %d", line))})
}

// lineText is what is wrong with a line.
type lineText struct {
	line int
	text string
}

// nameFaults prints the faults of a batch in the order of their lines: some are found when a line is
// read, others when the batch is sent.
func (m *fileAdder) nameFaults() {
	slices.SortFunc(m.faulty, func(a, b lineText) int { return cmp.Compare(a.line, b.line) })
	for _, f := range m.faulty {
		m.t.Notes.Line("line %d%s", f.line, f.text)
	}
	m.faulty = m.faulty[:0]
}

// noQueue takes each operation, and does nothing. The API has checked them.
type noQueue struct{ api.Queue }

func (noQueue) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for i, op := range ops {
		results[i] = &jobpb.Result{Id: op.GetAdd().GetId(), Seq: 1, State: jobpb.State_STATE_READY, Revision: 1}
	}
	return results, nil
}

type noOperator struct{ api.Operator }

func (noOperator) LeaderAddress() string { return "" }
