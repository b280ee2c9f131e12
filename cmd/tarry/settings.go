package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tarry/client"
)

func topicCommands() []clientEntry {
	return []clientEntry{
		{"get", "show the settings of a topic, or of all topics that have some", runTopicGet},
		{"set", "change settings of a topic", runTopicSet},
		{"unset", "take settings of a topic away", runTopicUnset},
	}
}

// runTopic finds the command on settings.
func runTopic(ctx context.Context, args []string, std streams) int {
	return subcommand(ctx, "topic", topicCommands(), args, std)
}

func runTopicGet(ctx context.Context, args []string, std streams) int {
	c := newCommand("topic get", "[TOPIC]", "Shows the settings of a topic, or of all topics that have some.", "tarry topic get mail", 0, 1)
	return c.run(ctx, args, std, func(ctx context.Context, t *terminal, args []string) error {
		if len(args) == 1 {
			s, err := t.client.Settings(ctx, args[0])
			if err != nil {
				return err
			}
			return t.printSettings(s)
		}
		for after := ""; ; {
			page, next, err := t.client.AllSettings(ctx, after, 0)
			if err != nil {
				return err
			}
			if after == "" && len(page) == 0 {
				t.notes.line("no topic has settings")
			}
			if err := t.printSettings(page...); err != nil || next == "" {
				return err
			}
			after = next
		}
	})
}

// settingFlags are the settings as flags, by the name that the server has for
// each, with a way to show them.
type settingFlags struct{ client.Settings }

// settingNames are the settings, as flags and to the server.
var settingNames = append([]string{"ttr", "max-attempts", "backoff", "max-pending", "expire", "expiry", "spread", "retain", "late-finish", "require-token", "push"}, limitNames...)

func (s *settingFlags) register(c *clientCommand) {
	c.flags.Func("ttr", "`time` that one reservation lasts, of adds that do not say", func(text string) error { return setTime(&s.TTR, text) })
	c.flags.Func("max-attempts", "`number` of times a job is handed out before it is dead, 0 for no limit; of adds that do not say", func(text string) error {
		var n number
		err := n.Set(text)
		s.MaxAttempts = n.v
		return err
	})
	c.flags.Func("backoff", backoffHelp+"; of jobs that have no backoff", func(text string) (err error) { s.Backoff, err = backoffOf(text); return err })
	c.flags.Func("max-pending", "most jobs, a `number`, that may be delayed or ready; past it adds are refused", func(text string) (err error) {
		s.MaxPending, err = wholeNumber(text)
		return err
	})
	s.registerLimits(c)
	c.flags.Func("expire", "`time` after its due instant until which a job may be handed out", func(text string) error { return setTime(&s.Expire, text) })
	c.flags.StringVar(&s.Expiry, "expiry", "", "`what` becomes of a job that expired: drop or dead; default drop")
	c.flags.Func("spread", "`time` over which jobs that are due at one instant are spread", func(text string) error { return setTime(&s.Spread, text) })
	c.flags.Func("retain", "`time` that finished and deleted jobs stay known", func(text string) error { return setTime(&s.Retain, text) })
	c.flags.StringVar(&s.LateFinish, "late-finish", "", "`what` becomes of a finish whose reservation has expired, when nobody else had the job since: accept or refuse; default accept")
	c.flags.BoolVar(&s.RequireToken, "require-token", false, "refuse finish, release, touch and bury without a token")
	s.registerPush(c)
}

// rows shows what is set.
func (s *settingFlags) rows() (rows [][]string) {
	if s.TTR.Duration != 0 {
		rows = append(rows, []string{"ttr", s.TTR.String()})
	}
	if s.MaxAttempts != nil {
		rows = append(rows, []string{"max-attempts", count(uint64(*s.MaxAttempts))})
	}
	if s.Backoff != nil {
		rows = append(rows, []string{"backoff", backoffWords(s.Backoff)})
	}
	if s.MaxPending != nil {
		rows = append(rows, []string{"max-pending", count(*s.MaxPending)})
	}
	rows = append(rows, s.limitRows()...)
	if s.Expire.Duration != 0 {
		rows = append(rows, []string{"expire", s.Expire.String()})
	}
	if s.Expiry != "" {
		rows = append(rows, []string{"expiry", s.Expiry})
	}
	if s.Spread.Duration != 0 {
		rows = append(rows, []string{"spread", s.Spread.String()})
	}
	if s.Retain.Duration != 0 {
		rows = append(rows, []string{"retain", s.Retain.String()})
	}
	if s.LateFinish != "" {
		rows = append(rows, []string{"late-finish", s.LateFinish})
	}
	if s.RequireToken {
		rows = append(rows, []string{"require-token", "yes"})
	}
	if s.Push != nil {
		rows = append(rows, []string{"push", pushWords(s.Push)})
	}
	return rows
}

// setTime reads a time that is not 0, which would not be sent.
func setTime(d *client.Duration, text string) error {
	var v duration
	if err := v.Set(text); err != nil {
		return err
	}
	if v.d == 0 {
		return errors.New("0 is no setting; take it away with tarry topic unset")
	}
	d.Duration = v.d
	return nil
}

func backoffWords(b *client.Backoff) string {
	words := fmt.Sprintf("%s, %g times more each time, up to %s", b.Base, b.Factor, b.Max)
	if len(b.Delays) > 0 {
		waits := make([]string, len(b.Delays))
		for i, d := range b.Delays {
			waits[i] = d.String()
		}
		words = strings.Join(waits, ", ")
	}
	if b.Jitter != 0 {
		words += fmt.Sprintf(", jitter %g", b.Jitter)
	}
	return words
}

func wholeNumber(text string) (*uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number", text)
	}
	return &n, nil
}

func runTopicSet(ctx context.Context, args []string, std streams) int {
	c := newCommand("topic set", "TOPIC", "Changes what is named of a topic's settings; the rest stays.", "tarry topic set mail --max-pending 100000", 1, 1)
	var s settingFlags
	s.register(c)
	return c.run(ctx, args, std, func(ctx context.Context, t *terminal, args []string) error {
		if len(s.rows()) == 0 {
			return usagef("nothing is to change; give one of --%s", strings.Join(settingNames, ", --"))
		}
		changed, err := t.client.ChangeSettings(ctx, args[0], s.Settings)
		if err != nil {
			return err
		}
		return t.printSettings(changed)
	})
}

func runTopicUnset(ctx context.Context, args []string, std streams) int {
	c := newCommand("topic unset", "TOPIC [SETTING...]", "Takes settings of a topic away, all of them when none is named.", "tarry topic unset mail max-pending", 1, len(settingNames)+1)
	return c.run(ctx, args, std, func(ctx context.Context, t *terminal, args []string) error {
		topic, names := args[0], args[1:]
		for i, name := range names {
			if !slices.Contains(settingNames, name) {
				return usagef("there is no setting %q; there are %s", name, strings.Join(settingNames, ", "))
			}
			names[i] = strings.ReplaceAll(name, "-", "_")
		}
		var changed client.TopicSettings
		var err error
		if len(names) == 0 {
			changed, err = t.client.SetSettings(ctx, topic, client.Settings{}, client.AnyRevision)
		} else {
			changed, err = t.client.ChangeSettings(ctx, topic, client.Settings{}, names...)
		}
		if err != nil {
			return err
		}
		return t.printSettings(changed)
	})
}

func (t *terminal) printSettings(all ...client.TopicSettings) error {
	for _, s := range all {
		if t.json {
			if err := t.printJSON(s); err != nil {
				return err
			}
			continue
		}
		rows := (&settingFlags{s.Settings}).rows()
		if len(rows) == 0 {
			if err := t.out.line("%s has no settings", s.Topic); err != nil {
				return err
			}
			continue
		}
		if err := t.table([]string{"topic", s.Topic}, rows); err != nil {
			return err
		}
	}
	return nil
}
