package jobs

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// releaseMany are the flags with which release gives back many jobs.
type releaseMany struct {
	client.Sweep
	topic, consumer, reason string
	all                     bool
	dry, sure               *bool
}

func ReleaseCommand() *cobra.Command {
	c, s := newStep("release", "give a reserved job back, or those of a consumer that is gone", "[ID]", 0, "Gives a reserved job back, to be handed out again; or, with --consumer or --topic, those that a consumer\nor a topic has reserved. A consumer that still works on such a job loses it, so it asks before, with their\nnumber. The attempt of each counts.",
		"tarry release --consumer worker-7 --all --reason 'worker-7 is down'", "token delay priority reason")
	var m releaseMany
	c.Flags.StringVar(&m.consumer, "consumer", "", "without ID: only jobs that the consumer with this `name` has reserved, in all topics unless --topic is given")
	c.Flags.StringVarP(&m.topic, "topic", "t", "", "without ID: only jobs of the topic with this `name`, of all consumers unless --consumer is given")
	cli.WhereFlag(c, "without ID: only jobs with this header, `name=value`; may be repeated", &m.Filter.Headers)
	c.Flags.StringVar(&m.Filter.IDPrefix, "id-prefix", "", "without ID: only jobs whose id starts with this `text`")
	c.Flags.IntVarP(&m.Max, "max", "n", 0, "without ID: maximum `number` of jobs, 1 to 10000")
	c.Flags.BoolVar(&m.all, "all", false, "without ID: all of them")
	m.dry, m.sure = dryFlag(c), c.YesFlag()
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) == 1 {
			if err := c.Needs("no ID", "consumer", "topic", "where", "id-prefix", "max", "all", "dry-run", "yes"); err != nil {
				return err
			}
			return s.one(ctx, t, args[0], releaseStep)
		}
		if err := c.Needs("an ID", "token", "delay", "priority"); err != nil {
			return err
		}
		switch {
		case m.consumer == "" && m.topic == "":
			return cli.Usagef("takes either an ID, or --consumer or --topic for many jobs")
		case m.all == (m.Max != 0):
			return cli.Usagef("takes either --all or --max")
		case m.Max < 0:
			return cli.Usagef("--max is %d; it takes 1 to 10000", m.Max)
		}
		m.reason = s.reason
		return releaseHeld(ctx, t, &m)
	})
}

func releaseHeld(ctx context.Context, t *cli.Terminal, m *releaseMany) error {
	failed := cli.ExitOK
	err := runBulk(ctx, t, bulk{
		word: "released", most: m.Max,
		matching: func() (int, error) { return reservedJobs(ctx, t, m) },
		question: func(n int) string {
			text := "Release " + cli.JobsOf(n, "reserved")
			if m.topic != "" {
				text += " of " + m.topic
			}
			if m.consumer != "" {
				text += " of consumer " + m.consumer
			}
			return text + "?"
		},
		step: sweep(func() (s client.Swept, err error) {
			s, failed, err = releaseTopics(ctx, t, m)
			return s, err
		}),
	}, *m.dry, *m.sure)
	if err != nil || failed == cli.ExitOK {
		return err
	}
	return cli.Exit(failed)
}

// releaseTopics releases the jobs of one topic after the other. failed is the exit code of the first that
// refused it.
func releaseTopics(ctx context.Context, t *cli.Terminal, m *releaseMany) (sum client.Swept, failed int, err error) {
	topics, err := topicsToRelease(ctx, t, m)
	if err != nil {
		return sum, cli.ExitOK, err
	}
	for _, topic := range topics {
		sweep := m.Sweep
		if sweep.Max -= sum.Count; m.Max > 0 && sweep.Max <= 0 {
			sum.More = true
			break
		}
		if m.Max == 0 {
			sweep.Max = 0
		}
		swept, err := t.Client.Topics().Release(ctx, topic, m.consumer, m.reason, sweep)
		if err != nil { // such as a topic that requires tokens
			t.Notes.Line("tarry release: %s: %s", topic, cli.Explain(err))
			failed = cmp.Or(failed, cli.ExitCode(err))
			continue
		}
		sum.Count, sum.More = sum.Count+swept.Count, sum.More || swept.More
	}
	return sum, failed, nil
}

// topicsToRelease lists the topic that is meant, or all that have reserved jobs.
func topicsToRelease(ctx context.Context, t *cli.Terminal, m *releaseMany) (names []string, err error) {
	if m.topic != "" {
		return []string{m.topic}, nil
	}
	for topic, err := range t.Client.Topics().List(ctx, client.PageOptions{}) {
		if err != nil {
			return nil, err
		}
		if topic.Reserved > 0 {
			names = append(names, topic.Name)
		}
	}
	return names, nil
}

// reservedJobs counts the jobs that are meant.
func reservedJobs(ctx context.Context, t *cli.Terminal, m *releaseMany) (n int, err error) {
	topics, err := topicsToRelease(ctx, t, m)
	if err != nil {
		return 0, err
	}
	for _, topic := range topics {
		for j, err := range t.Client.Jobs(ctx, client.ListOptions{Topic: topic, State: "reserved", Filter: m.Filter, Page: 1000}) {
			if errors.Is(err, client.ErrIncomplete) {
				t.Notes.Line("%v", err)
				break
			}
			if err != nil {
				return 0, err
			}
			if m.consumer == "" || j.ReservedBy == m.consumer {
				n++
			}
		}
	}
	return n, nil
}

func releaseStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return c.Release(ctx, ref, client.ReleaseOptions{Delay: s.delay.Value, AtOnce: s.delay.Given && s.delay.Value == 0, Priority: s.priority.Value, Reason: s.reason})
}
