package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/client"
)

// choices are the values of flags that take one of a few words, or a list of them.
var choices = map[string][]string{
	"state":     {"delayed", "ready", "reserved", "dead", "finished", "deleted"},
	"states":    {"delayed", "ready", "reserved", "dead"},
	"if-state":  {"delayed", "ready", "reserved", "dead", "finished", "deleted"},
	"if-exists": {string(client.Conflict), string(client.Keep), string(client.Replace), string(client.Postpone)},
	"overlap":   {"allow", "skip"},
	"missed":    {"skip", "one", "all"},
	"sort":      {"name", "backlog", "delayed", "ready", "reserved", "dead", "added", "finished"},
}

// completeTime bounds asking a node for names while a person waits for a completion.
const completeTime = time.Second

// completes tells shells what the flags and arguments of a command may be.
func (c *clientCommand) completes() {
	c.flags.VisitAll(func(f *pflag.Flag) {
		var values cobra.CompletionFunc
		switch words := choices[f.Name]; {
		case words != nil:
			values = cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "topic" || f.Name == "to" || f.Name == "to-topic":
			values = c.topicNames
		case f.Name == "exec" || f.Name == "file" || f.Name == "out" || strings.HasSuffix(f.Name, "-file"):
			return // names of files, which is what shells do by themselves
		default:
			values = cobra.NoFileCompletions
		}
		_ = c.cmd.RegisterFlagCompletionFunc(f.Name, values) // fails when it is called twice
	})
	c.cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 && strings.HasPrefix(strings.Trim(c.args, "["), "TOPIC") {
			return c.topicNames(cmd, args, word)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// topicNames completes the name of a topic. When no node answers there are none.
func (c *clientCommand) topicNames(_ *cobra.Command, _ []string, word string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	t, err := c.terminal()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer t.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	page, _, _ := t.client.Topics(ctx, "", 0)
	for _, topic := range page {
		if strings.HasPrefix(topic.Name, word) {
			names = append(names, topic.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// withoutQuotes takes the quotes around the names of values out of the help of flags: cobra
// shows them to shells as they are.
func withoutQuotes(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, below := range cmd.Commands() {
		withoutQuotes(below)
	}
}
