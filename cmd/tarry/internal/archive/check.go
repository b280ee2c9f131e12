package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
)

const checkText = `Reads everything in the data directory of a stopped node: its identity, its votes, every entry
of the Raft log and every record of the state, with all checksums, and whether they fit
together. It says what it found and changes nothing. Exit code 1 if something is damaged, or if
it could not check: then it prints nothing on standard output, also with --json.

Use it when a node refuses to start, before you copy a directory, or after trouble with a disk.
It opens the state in a temporary directory, with links to its tables. Run it as the user of
the node.`

func CheckCommand() *cobra.Command {
	c := cli.NewLocal("check", "check that the data directory of a stopped node is whole", "", checkText, "tarry check --data-dir /var/lib/tarry")
	dir := c.Flags.String("data-dir", "", "data `directory` of a stopped node")
	temp := c.Flags.String("temp-dir", "", "`directory` to open the state below; default: the system's for temporary files")
	return c.Does(func(context.Context, []string) error {
		if *dir == "" {
			return cli.Usagef("needs --data-dir, the directory of a stopped node")
		}
		found, err := recovery.Check(*dir, *temp)
		if err != nil {
			return err
		}
		if err := printChecked(c, &found); err != nil {
			return err
		}
		if len(found.Problems) > 0 {
			return cli.Exit(cli.ExitFailed)
		}
		return nil
	})
}

// checkedJSON is the output of check --json.
type checkedJSON struct {
	NodeID       string        `json:"node_id,omitempty"`
	ServerID     string        `json:"server_id,omitempty"`
	LogStore     string        `json:"log_store"`
	VoteTerm     uint64        `json:"vote_term"`
	FirstIndex   uint64        `json:"first_index"`
	LastIndex    uint64        `json:"last_index"`
	LastTerm     uint64        `json:"last_term"`
	Acknowledged uint64        `json:"acknowledged_index"` // by the watermark
	CutOffBytes  int64         `json:"cut_off_bytes"`
	AppliedIndex uint64        `json:"applied_index"`
	Jobs         uint64        `json:"jobs"` // in the state; entries of the log may change it
	Problems     []problemJSON `json:"problems"`
}

type problemJSON struct {
	Part  string `json:"part"`
	Error string `json:"error"`
}

func printChecked(c *cli.LocalCommand, f *recovery.CheckReport) error {
	if c.JSON {
		out := checkedJSON{
			NodeID: f.NodeID, ServerID: f.ServerID, LogStore: f.LogStore, VoteTerm: f.Log.Term, FirstIndex: f.Log.First, LastIndex: f.Log.Last, LastTerm: f.Log.LastTerm,
			Acknowledged: f.Log.Acknowledged, CutOffBytes: f.Log.CutOff, AppliedIndex: f.AppliedIndex, Jobs: f.Counts.Jobs(), Problems: []problemJSON{},
		}
		for _, p := range f.Problems {
			out.Problems = append(out.Problems, problemJSON{p.Part, p.Err.Error()})
		}
		return c.PrintJSON(out)
	}
	damaged := map[string]bool{}
	for _, p := range f.Problems {
		damaged[p.Part] = true
	}
	// result is "ok" for a part that is whole.
	result := func(part string) string {
		if damaged[part] {
			return "damaged"
		}
		return "ok"
	}
	log := fmt.Sprintf("entries %d to %d can be read", f.Log.First, f.Log.Last)
	switch {
	case f.Log.Last == 0:
		log = "no entry can be read"
	case damaged["log"] && f.Log.FirstDamaged > 0 && f.Log.FirstDamaged < f.Log.Last:
		log = fmt.Sprintf("of entries %d to %d not all can be read", f.Log.First, f.Log.Last)
	}
	err := errors.Join(
		c.Out.Line("identity:    %s: node %s, %s", result("identity"), cli.Dash(f.NodeID), f.LogStore),
		c.Out.Line("votes:       %s: term %d", result("votes"), f.Log.Term),
		c.Out.Line("log:         %s: %s; acknowledged up to %d", result("log"), log, f.Log.Acknowledged),
		c.Out.Line("state:       %s: up to entry %d", result("state"), f.AppliedIndex),
		printCounts(c, &f.Counts),
	)
	if behind := f.Keeps() - f.AppliedIndex; behind > 0 && !damaged["state"] {
		err = errors.Join(err, c.Out.Line("not counted: what the last %d entries of the log change, which the node, when it starts, or a recovery brings into the state", behind))
	}
	if f.Log.CutOff > 0 {
		err = errors.Join(err, c.Out.Line("The log ends with %d bytes of a write that a crash cut off and nobody acknowledged; the next start removes them.", f.Log.CutOff))
	}
	for _, p := range f.Problems {
		err = errors.Join(err, c.Out.Line("%s: %v", p.Part, p.Err))
	}
	if len(f.Problems) == 0 {
		return errors.Join(err, c.Out.Line("nothing is damaged"))
	}
	advice := "The directory is damaged and was not changed. If other nodes are a majority and run, move it away and start the node with --join: it gets everything from them. " +
		"If it is all that is left, keep a copy of it; restore a backup with tarry restore, or put a copy in its place that was made while the node was stopped."
	if f.Readable() == nil {
		advice += " If only the end of the log is damaged, tarry recover --as-only-voter --discard-damaged-end goes on with what can be read; with --dry-run, too, it says what would be lost."
	}
	return errors.Join(err, c.Out.Line("%s", advice))
}
