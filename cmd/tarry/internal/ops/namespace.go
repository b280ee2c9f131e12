package ops

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func NamespaceCommand() *cobra.Command {
	return cli.Group("namespace", "create, list, show, update, delete namespaces of tenants", "Makes and shows namespaces: the topics of a tenant, and what they may hold\n(docs/namespaces.md).",
		namespaceCreateCommand(), namespaceListCommand(), namespaceShowCommand(), namespaceUpdateCommand(), namespaceDeleteCommand())
}

// quotaFlag is a quota on the command line: a number, or none.
type quotaFlag[T uint64 | float64] struct {
	to    *T // nil: none
	given bool
	parse func(string) (T, error)
	kind  string // of number
}

func (q *quotaFlag[T]) String() string {
	if q.to == nil {
		return ""
	}
	return fmt.Sprint(*q.to)
}

func (q *quotaFlag[T]) Type() string { return "quota" }

func (q *quotaFlag[T]) Set(text string) error {
	q.given, q.to = true, nil
	if text == "none" {
		return nil
	}
	v, err := q.parse(text)
	if err != nil {
		return fmt.Errorf("%q is neither a %s nor none", text, q.kind)
	}
	q.to = &v
	return nil
}

// apply sets a quota if it was given.
func (q *quotaFlag[T]) apply(to **T) {
	if q.given {
		*to = q.to
	}
}

// namespaceFlags describe a namespace.
type namespaceFlags struct {
	spec                client.NamespaceSpec
	jobs, bytes, topics quotaFlag[uint64]
	rate                quotaFlag[float64]
}

func (f *namespaceFlags) register(c *cli.Command) {
	c.Flags.StringVar(&f.spec.TopicPrefix, "topic-prefix", "", "`prefix` of the topics in the namespace, such as billing.")
	c.Flags.StringVar(&f.spec.IDPrefix, "id-prefix", "", "`prefix` with which the ids that producers give to its jobs must begin")
	c.Flags.StringVar(&f.spec.Description, "description", "", "a `text` for people")
	for name, q := range map[string]*quotaFlag[uint64]{"jobs": &f.jobs, "bytes": &f.bytes, "topics": &f.topics} {
		q.kind = "whole number"
		q.parse = func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 63) }
		help := map[string]string{"jobs": "most jobs in all states", "bytes": "most bytes of the bodies of its jobs", "topics": "most topics"}[name]
		c.Flags.Var(q, name, help+": a `number`, or none")
	}
	f.rate.kind = "number"
	f.rate.parse = func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	c.Flags.Var(&f.rate, "rate", "most jobs added a second through each node: a `number`, or none")
}

// change returns a namespace with what was given.
func (f *namespaceFlags) change(to client.NamespaceSpec) client.NamespaceSpec {
	for _, text := range [...]struct{ from, to *string }{{&f.spec.TopicPrefix, &to.TopicPrefix}, {&f.spec.IDPrefix, &to.IDPrefix}, {&f.spec.Description, &to.Description}} {
		if *text.from != "" {
			*text.to = *text.from
		}
	}
	f.jobs.apply(&to.Quotas.Jobs)
	f.bytes.apply(&to.Quotas.Bytes)
	f.topics.apply(&to.Quotas.Topics)
	f.rate.apply(&to.Quotas.Rate)
	return to
}

func namespaceCreateCommand() *cobra.Command {
	c := cli.NewCommand("create", "make a namespace", "NAME", "Makes a namespace. It fails if there is another one with the name. The topics that exist\nbelong to it at once, with their jobs.",
		"tarry namespace create billing --topic-prefix billing. --jobs 100000 --rate 500", 1, 1)
	var f namespaceFlags
	f.register(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if f.spec.TopicPrefix == "" {
			return cli.Usagef("--topic-prefix is missing: it says which topics are in the namespace")
		}
		put, err := t.Client.Namespaces().Put(ctx, args[0], f.change(client.NamespaceSpec{}), 0)
		return printNamespacePut(t, put, "made", ifItExists(ctx, t, args[0], err))
	})
}

// ifItExists adds to the error of a namespace that was not made what to do if there is one with
// the name. With the same code there may also be too many.
func ifItExists(ctx context.Context, t *cli.Terminal, name string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != client.CodeConditionFailed {
		return err
	}
	if _, err := t.Client.Namespaces().Get(ctx, name); err != nil {
		return refused
	}
	hinted := *refused
	hinted.Message += "; change it with tarry namespace update " + name
	return &hinted
}

func namespaceUpdateCommand() *cobra.Command {
	c := cli.NewCommand("update", "change a namespace", "NAME", "Changes what is given of a namespace. Jobs that are there stay, also above a lower quota.",
		"tarry namespace update billing --jobs 200000 --rate none", 1, 1)
	var f namespaceFlags
	f.register(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		n, err := t.Client.Namespaces().Get(ctx, args[0])
		if err != nil {
			return err
		}
		put, err := t.Client.Namespaces().Put(ctx, args[0], f.change(n.NamespaceSpec), n.Revision)
		return printNamespacePut(t, put, "changed", err)
	})
}

func printNamespacePut(t *cli.Terminal, put client.NamespacePut, done string, err error) error {
	switch {
	case err != nil:
		return err
	case t.JSON:
		return t.PrintJSON(put)
	case put.Existing:
		return t.Out.Line("namespace %s is so already", put.Name)
	}
	return t.Out.Line("namespace %s %s", put.Name, done)
}

func namespaceListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list the namespaces", "", "Lists the namespaces, with what they hold of what they may hold.", "tarry namespace list", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		all, err := client.Collect(t.Client.Namespaces().List(ctx))
		if err != nil {
			return err
		}
		return cli.PrintAll(t, all, []string{"NAME", "TOPICS", "JOBS", "BYTES", "NUMBER OF TOPICS", "RATE"}, func(n client.Namespace) []string {
			return []string{n.Name, cli.Plain([]byte(n.TopicPrefix)) + "*", ofQuota(n.Use.Jobs, n.Quotas.Jobs), ofQuota(n.Use.Bytes, n.Quotas.Bytes), ofQuota(n.Use.Topics, n.Quotas.Topics), rateQuota(n.Quotas.Rate)}
		})
	})
}

// ofQuota writes what is used of a quota.
func ofQuota(used uint64, quota *uint64) string {
	if quota == nil {
		return cli.Count(used)
	}
	return cli.Count(used) + " of " + cli.Count(*quota)
}

func rateQuota(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return strconv.FormatFloat(*rate, 'f', -1, 64) + "/s"
}

func namespaceShowCommand() *cobra.Command {
	c := cli.NewCommand("show", "show a namespace", "NAME", "Shows a namespace, and what it holds of what it may hold.", "tarry namespace show billing", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		n, err := t.Client.Namespaces().Get(ctx, args[0])
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(n)
		}
		rows := [][]string{
			{"topics", cli.Plain([]byte(n.TopicPrefix)) + "*"}, {"jobs", ofQuota(n.Use.Jobs, n.Quotas.Jobs)},
			{"bytes", ofQuota(n.Use.Bytes, n.Quotas.Bytes)}, {"number of topics", ofQuota(n.Use.Topics, n.Quotas.Topics)}, {"rate through each node", rateQuota(n.Quotas.Rate)},
		}
		for _, r := range [][]string{{"id prefix", n.IDPrefix}, {"description", n.Description}} {
			if r[1] != "" {
				rows = append(rows, []string{r[0], cli.Plain([]byte(r[1]))})
			}
		}
		return t.Table([]string{"namespace", n.Name}, rows)
	})
}

func namespaceDeleteCommand() *cobra.Command {
	c := cli.NewCommand("delete", "remove a namespace; its jobs stay", "NAME", "Removes a namespace. Its topics and jobs stay, without quotas. It asks before.", "tarry namespace delete billing", 1, 1)
	c.Asks(func(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
		n, err := t.Client.Namespaces().Get(ctx, args[0])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Remove the namespace %s? Its topics and %s remain, without quotas.", args[0], cli.JobsOf(int(n.Use.Jobs), "")), nil
	})
	return cli.Operate(c, false, "removed", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Namespaces().Delete(ctx, args[0])
	})
}
