package cli

import (
	"github.com/spf13/pflag"

	"tarry/client"
)

// FilterFlags are the flags that select jobs.
type FilterFlags struct {
	client.Filter
	dueFrom, dueTo, diedFrom, diedTo Instant
}

func (f *FilterFlags) Register(c *Command) {
	c.Flags.StringVar(&f.IDPrefix, "id-prefix", "", "only jobs whose id starts with this `text`")
	c.Flags.StringVar(&f.Reason, "reason", "", "only jobs with this `text` in their reason or last error")
	exactReasonFlag(c, &f.ExactReason)
	c.Flags.Var(&f.dueFrom, "due-from", "only jobs that are due at this `timestamp` or later, such as 2030-01-31T12:00:00Z")
	c.Flags.Var(&f.dueTo, "due-to", "only jobs that are due before this `timestamp`")
	c.Flags.Var(&f.diedFrom, "died-from", "only jobs that died at this `timestamp` or later")
	c.Flags.Var(&f.diedTo, "died-to", "only jobs that died before this `timestamp`")
	WhereFlag(c, "only jobs with this header, `name=value`; may be repeated", &f.Headers)
	c.Flags.AddFlag(&pflag.Flag{Name: "header", Value: c.Flags.Lookup("where").Value, Hidden: true}) // its old name
}

// WhereFlag adds the filter by headers, which is no --header: to an add or update that is what
// the job gets.
func WhereFlag(c *Command, help string, headers *map[string]string) {
	c.Flags.Func("where", help, func(text string) error { return Pair(headers, text) })
}

// exactReasonFlag adds the filter by a whole reason, which may be empty.
func exactReasonFlag(c *Command, reason **string) {
	c.Flags.Func("exact-reason", "only jobs whose whole reason, as tarry dead shows it, is this `text`; \"\" for none", func(text string) error {
		*reason = &text
		return nil
	})
}

// FilterNames are the flags that Register adds.
var FilterNames = []string{"id-prefix", "reason", "exact-reason", "due-from", "due-to", "died-from", "died-to", "where", "header"}

// Selected returns the filter of the flags.
func (f *FilterFlags) Selected() client.Filter {
	f.DueFrom, f.DueTo, f.DiedFrom, f.DiedTo = f.dueFrom.Time, f.dueTo.Time, f.diedFrom.Time, f.diedTo.Time
	return f.Filter
}
