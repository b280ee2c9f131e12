package main

import (
	"cmp"
	"context"
	"slices"

	"tarry/client"
)

// changeAtOnce is how many jobs one request changes.
const changeAtOnce = 1000

// changeMany does something to several jobs, with one result each.
type changeMany func(ctx context.Context, ids []string) ([]client.ChangeResult, error)

// each does something to the jobs with these ids: f to a single one, else many.
func (s *stepFlags) each(ctx context.Context, t *terminal, c *clientCommand, ids []string, f stepFunc, many changeMany) error {
	if len(ids) == 1 {
		return s.one(ctx, t, ids[0], f)
	}
	if err := c.needs("a single ID", "token", "if-revision", "if-state"); err != nil {
		return err
	}
	return t.printMany(ctx, c.path(), ids, many)
}

// printMany prints what became of each job. Those that were not changed are named on standard
// error, and the first of them decides the exit code.
func (t *terminal) printMany(ctx context.Context, path string, ids []string, f changeMany) error {
	failed := exitOK
	for some := range slices.Chunk(ids, changeAtOnce) {
		results, err := f(ctx, some)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				t.notes.line("%s: %s", path, explain(r.Err))
				failed = cmp.Or(failed, exitCode(r.Err))
			} else if err := t.printChanged(r.Changed); err != nil {
				return err
			}
		}
	}
	if failed != exitOK {
		return exit(failed)
	}
	return nil
}

// deleteMany is a changeMany.
func (t *terminal) deleteMany(ctx context.Context, ids []string) ([]client.ChangeResult, error) {
	refs := make([]client.Ref, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	failures, err := t.client.DeleteBatch(ctx, refs)
	results := make([]client.ChangeResult, len(failures))
	for i, f := range failures {
		results[i].Changed, results[i].Err = gone(refs[i], f)
	}
	return results, err
}
