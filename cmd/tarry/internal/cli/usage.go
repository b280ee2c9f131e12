package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UsageError is the error of an invalid command line.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

func (e UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// FlagsOnly is the Args of a command without positional arguments.
func FlagsOnly(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("takes flags only, not %q", args[0])
	}
	return nil
}

// Group makes a command that only holds others. Without one of them it prints its help.
func Group(use, short, text string, commands ...*cobra.Command) *cobra.Command {
	// DisableFlagsInUseLine tells usageTemplate that it does nothing by itself.
	g := &cobra.Command{Use: use, Short: short, Long: text, SuggestionsMinimumDistance: 2, DisableFlagsInUseLine: true}
	g.AddCommand(commands...)
	g.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && args[0] != "help" {
			return noCommand(cmd, args[0])
		}
		return nil
	}
	g.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return g
}

// usageTemplate is cobra's, without a line that says that a group can be run alone.
func usageTemplate(cobras string) string {
	return strings.Replace(cobras, "{{if .Runnable}}", "{{if and .Runnable (not .DisableFlagsInUseLine)}}", 1)
}

// noCommand is the error of a word that is no command of cmd.
func noCommand(cmd *cobra.Command, word string) error {
	if like := cmd.SuggestionsFor(word); len(like) > 0 {
		return Usagef("there is no command %q; did you mean %s?", word, strings.Join(like, " or "))
	}
	return Usagef("there is no command %q", word)
}

// FlagError words the errors of package pflag for people.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && cmd.HasSubCommands() && cmd.Flags().NArg() > 0:
		return noCommand(cmd, cmd.Flags().Arg(0)) // whose flag it is
	case errors.As(err, &unknown):
		return noFlag(cmd, unknown)
	case errors.As(err, &invalid) && namesFlag(cmd.Flags(), invalid.GetValue()):
		return Usagef("flag --%s has no value: it was followed by %s, which is a flag", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid):
		return Usagef("invalid value %q for flag --%s: %s", invalid.GetValue(), invalid.GetFlag().Name, InvalidReason(PlainReason(invalid.GetFlag().Value.Type(), invalid.Unwrap())))
	}
	return UsageError{err}
}

// namesFlag reports whether an argument that was taken for the value of a flag is itself one.
func namesFlag(flags *pflag.FlagSet, arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return strings.HasPrefix(arg, "-") && flags.Lookup(name) != nil
}

// noFlag is the error of a flag that cmd does not have.
func noFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name, dashes := unknown.GetSpecifiedName(), "--"
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		name, dashes = letters, "-" // a long name with one dash, or a letter
	}
	hint, flags := "", cmd.Flags()
	if cmd.HasSubCommands() {
		flags = CommonFlags() // they may stand before the command
	}
	if like := nearestFlag(flags, name); like != "" {
		hint = "; did you mean --" + like + "?"
	} else if _, args, _ := strings.Cut(cmd.Use, " "); len(name) > 1 && slices.Contains(strings.Fields(strings.Trim(args, "[].")), strings.ToUpper(name)) {
		hint = fmt.Sprintf("; %s is an argument, without a flag", strings.ToUpper(name))
	}
	return Usagef("flag provided but not defined: %s%s%s", dashes, name, hint)
}

// nearestFlag is the long flag that is most like a name, or begins with it; empty: none is.
func nearestFlag(flags *pflag.FlagSet, name string) (nearest string) {
	if len(name) < 2 {
		return ""
	}
	least := min(2, (len(name)-1)/2) + 1 // more edits make another word
	flags.VisitAll(func(f *pflag.Flag) {
		d := edits(name, f.Name)
		if strings.HasPrefix(f.Name, name) {
			d = min(d, 1)
		}
		if !f.Hidden && d < least {
			nearest, least = f.Name, d
		}
	})
	return nearest
}

// edits is how many characters must be added, removed or changed to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // of the beginning of a, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

// flagsBehind moves flags that all client commands have, and that stand before the words of
// the command, behind these: tarry --json stats.
func flagsBehind(root *cobra.Command, args []string) []string {
	common := CommonFlags()
	var words, flags []string
	i := 0
	for cmd := root; i < len(args); {
		if n := flagLength(common, args[i:]); n > 0 {
			flags = append(flags, args[i:i+n]...)
			i += n
			continue
		}
		if !cmd.HasSubCommands() || strings.HasPrefix(args[i], "-") {
			break
		}
		words = append(words, args[i])
		i++
		next := child(cmd, args[i-1])
		if next == nil {
			break // the error names it
		}
		cmd = next
	}
	return slices.Concat(words, flags, args[i:])
}

// flagLength is how many of args are their first flag and its value; 0: they do not begin
// with one of the flags.
func flagLength(flags *pflag.FlagSet, args []string) int {
	name, _, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	if !strings.HasPrefix(args[0], "-") || name == "" {
		return 0
	}
	f := flags.Lookup(name)
	if f == nil && !strings.HasPrefix(args[0], "--") {
		f, hasValue = flags.ShorthandLookup(name[:1]), hasValue || len(name) > 1 // -a1.2.3.4:7300
	}
	switch {
	case f == nil || len(name) > 1 && f.NoOptDefVal != "" && name != f.Name:
		return 0
	case f.NoOptDefVal != "" || hasValue:
		return 1
	}
	return min(2, len(args))
}

// PlainReason replaces the errors of Go's package flag, which do not say what a value of that type is.
func PlainReason(flagType string, err error) error {
	switch {
	case err == nil || err.Error() != "parse error" && err.Error() != "value out of range":
		return err
	case err.Error() == "value out of range":
		return errors.New("it is out of range")
	case flagType == "duration":
		return errors.New("it is not a duration such as 5s")
	case flagType == "bool":
		return errors.New("it is neither true nor false")
	case flagType == "float64":
		return errors.New("it is not a number")
	}
	return errors.New("it is not a whole number")
}

// InvalidReason says why a value is invalid.
func InvalidReason(err error) string {
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return err.Error()
	case errors.Is(err, strconv.ErrRange):
		return "it is out of range"
	case number.Func == "ParseBool":
		return "it is neither true nor false"
	case number.Func == "ParseFloat":
		return "it is not a number"
	}
	return "it is not a whole number"
}

// twoDashes gives long flags with one dash, as Go's package flag reads them, a second
// one. Otherwise "-topic mail" would be the short flag -t with the value "opic". A name that
// is nearly that of a long flag gets one as well, so that "-toppic mail" is an error.
func twoDashes(root *cobra.Command, args []string) []string {
	cmd, words := deepest(root, args)
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	changed := append([]string(nil), args...)
	for i := words; i < len(args) && args[i] != "--"; i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || name == "" {
			continue
		}
		f := cmd.Flags().Lookup(name)
		switch {
		case !strings.HasPrefix(args[i], "--") && (f != nil && len(name) > 1 || f == nil && misspelled(cmd.Flags(), name)):
			changed[i] = "-" + args[i]
		case len(args[i]) == 2:
			f = cmd.Flags().ShorthandLookup(name)
		}
		if f != nil && f.NoOptDefVal == "" && !hasValue {
			i++ // its value, whatever it looks like
		}
	}
	return changed
}

// misspelled reports whether a name with one dash, which would be a short flag with a value,
// is more likely meant as a long flag.
func misspelled(flags *pflag.FlagSet, name string) bool {
	return flags.ShorthandLookup(name[:1]) != nil && nearestFlag(flags, name) != ""
}

// deepest finds the command that args begin with, and how many of them name it.
func deepest(root *cobra.Command, args []string) (cmd *cobra.Command, words int) {
	for cmd = root; words < len(args); words++ {
		next := child(cmd, args[words])
		if next == nil {
			break
		}
		cmd = next
	}
	return cmd, words
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}
