package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is the error of an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// flagsOnly is the Args of a command without positional arguments.
func flagsOnly(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("takes flags only, not %q", args[0])
	}
	return nil
}

// group makes a command that only holds others. Without one of them it prints its help
// and fails.
func group(use, short, text string, commands ...*cobra.Command) *cobra.Command {
	// DisableFlagsInUseLine tells usageTemplate that it does nothing by itself.
	g := &cobra.Command{Use: use, Short: short, Long: text, SuggestionsMinimumDistance: 2, DisableFlagsInUseLine: true}
	g.AddCommand(commands...)
	g.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && args[0] != "help" {
			return noCommand(cmd, args[0])
		}
		return nil
	}
	g.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cmd.Help()
		}
		cmd.SetOut(cmd.ErrOrStderr())
		return errors.Join(cmd.Help(), exit(exitUsage))
	}
	return g
}

// usageTemplate is cobra's, without a line that says that a group can be run alone.
func usageTemplate(cobras string) string {
	return strings.Replace(cobras, "{{if .Runnable}}", "{{if and .Runnable (not .DisableFlagsInUseLine)}}", 1)
}

// noCommand is the error of a word that is no command of cmd.
func noCommand(cmd *cobra.Command, word string) error {
	if like := cmd.SuggestionsFor(word); len(like) > 0 {
		return usagef("there is no command %q; did you mean %s?", word, strings.Join(like, " or "))
	}
	return usagef("there is no command %q", word)
}

// flagError words the errors of package pflag for people.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && cmd.HasSubCommands() && cmd.Flags().NArg() > 0:
		return noCommand(cmd, cmd.Flags().Arg(0)) // whose flag it is
	case errors.As(err, &unknown):
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		return usagef("flag provided but not defined: %s%s", dashes, unknown.GetSpecifiedName())
	case errors.As(err, &invalid):
		return usagef("invalid value %q for flag --%s: %s", invalid.GetValue(), invalid.GetFlag().Name, invalidReason(invalid.Unwrap()))
	}
	return usageError{err}
}

// invalidReason says why a value is invalid.
func invalidReason(err error) string {
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
// one. Otherwise "-topic mail" would be the short flag -t with the value "opic".
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
		case f != nil && len(name) > 1 && !strings.HasPrefix(args[i], "--"):
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
