package jobs

import (
	"cmp"
	"context"
	"slices"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// changeAtOnce is how many jobs one request changes.
const changeAtOnce = 1000

// changeMany does something to several jobs, with one result each.
type changeMany func(ctx context.Context, ids []string) ([]client.ChangeResult, error)

// each does something to the jobs with these ids: f to a single one, else many.
func (s *stepFlags) each(ctx context.Context, t *cli.Terminal, c *cli.Command, ids []string, f stepFunc, many changeMany) error {
	if len(ids) == 1 {
		return s.one(ctx, t, ids[0], f)
	}
	if err := c.Needs("a single ID", "token", "if-revision", "if-state"); err != nil {
		return err
	}
	return printMany(ctx, t, c.Path(), ids, many)
}

// printMany prints what became of each job. Those that were not changed are named on standard
// error, and the first of them decides the exit code.
func printMany(ctx context.Context, t *cli.Terminal, path string, ids []string, f changeMany) error {
	failed := cli.ExitOK
	for some := range slices.Chunk(ids, changeAtOnce) {
		results, err := f(ctx, some)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				t.Notes.Line("%s: %s", path, cli.Explain(r.Err))
				failed = cmp.Or(failed, cli.ExitCode(r.Err))
			} else if err := printChanged(t, r.Changed); err != nil {
				return err
			}
		}
	}
	if failed != cli.ExitOK {
		return cli.Exit(failed)
	}
	return nil
}

// deleteMany is a changeMany.
func deleteMany(ctx context.Context, t *cli.Terminal, ids []string) ([]client.ChangeResult, error) {
	refs := make([]client.Ref, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	failures, err := t.Client.DeleteBatch(ctx, refs)
	results := make([]client.ChangeResult, len(failures))
	for i, f := range failures {
		results[i].Changed, results[i].Err = gone(refs[i], f)
	}
	return results, err
}
