package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/job"
)

const (
	// A request takes 1000 jobs, and 32 MiB of JSON, which lines have as well.
	BatchJobs  = 1000
	BatchBytes = 8 << 20
	MaxJobLine = 16 << 20
	// ShownFaults is how many lines are named that a node refused.
	ShownFaults = 10
)

var AuthModes = []string{"off", "report", "enforce"}

// AtMost is n, or the limit of a sweep; 0 is none.
func AtMost(n, limit int) int {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// Arguments is the Args of a command with positional arguments.
func Arguments(names string, least, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return Usagef("takes %s, got %d arguments", names, len(args))
		}
		return nil
	}
}

func Yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// LiveStates are the states of all jobs but those that a topic only retains.
var LiveStates = []client.State{client.StateDelayed, client.StateReady, client.StateReserved, client.StateDead}

func StatesOf(names []string) (states []client.State) {
	for _, name := range names {
		states = append(states, client.State(name))
	}
	return states
}

func IsMissing(err error) bool { return errors.Is(err, client.CodeNotFound) }

// Duration is a flag's value: a Go duration (1h30m, 250ms), which may begin with weeks
// and days (2w, 1d12h), or plain seconds.
type Duration struct {
	Value    time.Duration
	Given    bool
	Positive bool // 0, which means the default to the client, is refused
}

func (v *Duration) String() string {
	if v.Value == 0 {
		return ""
	}
	return job.DurationText(v.Value)
}

func (v *Duration) Type() string { return "duration" }

func (v *Duration) Set(s string) error {
	v.Given = true
	d, err := job.ParseDuration(s)
	if err != nil {
		return err
	}
	v.Value = d
	if v.Positive && v.Value == 0 {
		return errors.New("it must be more than 0; leave the flag out for the default")
	}
	return nil
}

// Filled reads a flag's value that may be left out but not be empty, as that of a
// script's variable is which is not set.
func Filled(to *string) func(string) error {
	return func(text string) error {
		if text == "" {
			return errors.New("it is empty; leave the flag out")
		}
		*to = text
		return nil
	}
}

// RevisionOf reads a revision, of so many bits.
func RevisionOf(text string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a revision", text)
	case n == 0:
		return 0, errors.New("revisions start with 1; leave the flag out for any")
	}
	return n, nil
}

// Pair reads name=value into a map.
func Pair(to *map[string]string, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q is not of the form name=value", text)
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
	return nil
}

// Number is a flag's value that may be left out.
type Number struct{ Value *uint32 }

func (n *Number) String() string {
	if n == nil || n.Value == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*n.Value), 10)
}

func (n *Number) Type() string { return "number" }

func (n *Number) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a whole number between 0 and 4294967295", s)
	}
	n.Value = new(uint32(v))
	return nil
}

// Instant is a flag's value that may be left out.
type Instant struct{ Time time.Time }

func (i *Instant) String() string {
	if i == nil || i.Time.IsZero() {
		return ""
	}
	return i.Time.Format(time.RFC3339Nano)
}

func (i *Instant) Type() string { return "instant" }

func (i *Instant) Set(s string) (err error) {
	if i.Time, err = time.Parse(time.RFC3339, s); err != nil {
		return fmt.Errorf("%q is not an RFC 3339 instant with a zone, such as 2030-01-31T12:00:00Z", s)
	}
	return nil
}
