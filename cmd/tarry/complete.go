package main

import (
	"context"
	"slices"
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

// complete tells shells what the flags and arguments of cmd, and of those below it, may be.
// It is for the one run that a shell asks: cobra keeps these functions for ever.
func complete(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Usage = strings.ReplaceAll(f.Usage, "`", "") // shells show it as it is
		if values := valuesOf(f.Name); values != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, values) // fails when it is called twice
		}
	})
	if words := strings.Fields(cmd.Use); len(words) > 1 && strings.Trim(words[1], "[]") == "TOPIC" {
		cmd.ValidArgsFunction = firstTopic
	} else {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, below := range cmd.Commands() {
		complete(below)
	}
}

// valuesOf completes a flag; nil: with the names of files, as shells do by themselves.
func valuesOf(name string) cobra.CompletionFunc {
	words := choices[name]
	switch {
	case words != nil:
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	case name == "topic" || name == "to" || name == "to-topic":
		return topicNames
	case slices.Contains([]string{"exec", "file", "out", "config", "data-dir", "dir", "push-secret-file"}, name):
		return nil
	}
	return cobra.NoFileCompletions
}

// firstTopic completes the first argument, which is a topic.
func firstTopic(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return topicNames(cmd, args, word)
}

// topicNames completes the name of a topic. When no node answers there are none.
func topicNames(cmd *cobra.Command, _ []string, word string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	addr, _ := cmd.Flags().GetString("addr")
	c, err := client.New(nodesAt(addr), client.WithPatience(0))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	page, _, _ := c.Topics(ctx, "", 0)
	for _, topic := range page {
		if strings.HasPrefix(topic.Name, word) {
			names = append(names, topic.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
