package cli

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/client"
	"tarry/job"
)

// WordsAnnotation is where a flag of tarry server has its values, if they are few.
const WordsAnnotation = "words"

// Choices are the values of other flags that take one of a few words, or a list of them.
var Choices = map[string][]string{
	"state":     {"delayed", "ready", "reserved", "dead", "finished", "deleted"},
	"states":    {"delayed", "ready", "reserved", "dead"},
	"if-state":  {"delayed", "ready", "reserved", "dead", "finished", "deleted"},
	"if-exists": {string(client.Conflict), string(client.Keep), string(client.Replace), string(client.Postpone)},
	"overlap":   {"allow", "skip"},
	"missed":    {"skip", "one", "all"},
	"step":      {"minute", "hour", "day"},
	"kind":      {"member", "leader", "clock", "disk", "version", "drain", "backup", "certificate", "gossip"},
	"log-store": {"raft-wal", "raft-boltdb"},
	"protocol":  {"http", "beanstalkd"},
	"sort":      {"name", "backlog", "delayed", "ready", "reserved", "dead", "added", "finished"},
}

// completeTime bounds asking a node for names while a person waits for a completion.
const completeTime = time.Second

// completeJobs is how many jobs are named at most.
const completeJobs = 100

// complete tells shells what the flags and arguments of cmd, and of those below it, may be.
// It is for the one run that a shell asks: cobra keeps these functions for ever.
func complete(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(f)
		f.Usage = strings.ReplaceAll(f.Usage, "`", "") // shells show it as it is
		if values := valuesOf(f, value); values != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, values) // fails when it is called twice
		}
	})
	cmd.ValidArgsFunction = argumentsOf(cmd)
	for _, below := range cmd.Commands() {
		complete(below)
	}
}

// valuesOf completes a flag, of which the usage calls the value so; nil: with the names of
// files, as shells do by themselves.
func valuesOf(f *pflag.Flag, value string) cobra.CompletionFunc {
	name, words := f.Name, f.Annotations[WordsAnnotation]
	if words == nil {
		words = Choices[name]
	}
	if words == nil && strings.Contains(value, "|") {
		words = strings.Split(value, "|")
	}
	switch {
	case words != nil:
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	case name == "topic" || name == "to" || name == "to-topic":
		return topicNames
	case slices.Contains([]string{"file", "directory", "program"}, value) || strings.HasSuffix(name, "-file"):
		return nil
	}
	return cobra.NoFileCompletions
}

// argumentsOf completes the arguments that the use of a command names.
func argumentsOf(cmd *cobra.Command) cobra.CompletionFunc {
	args := strings.Fields(cmd.Use)[1:]
	return func(cmd *cobra.Command, given []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 || len(given) >= len(args) && !strings.Contains(args[len(args)-1], "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		argument := strings.Trim(args[min(len(given), len(args)-1)], "[].")
		of := names(cmd, argument)
		switch {
		case argument == "FILE":
			return nil, cobra.ShellCompDirectiveDefault
		case strings.Contains(argument, "|"):
			return cobra.FixedCompletions(strings.Split(argument, "|"), cobra.ShellCompDirectiveNoFileComp)(cmd, given, word)
		case of == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return namesOf(cmd, word, of), cobra.ShellCompDirectiveNoFileComp
	}
}

// topicNames completes the name of a topic.
func topicNames(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return namesOf(cmd, word, topicsThere), cobra.ShellCompDirectiveNoFileComp
}

// lookup asks a node for names that begin with a word, or for all.
type lookup func(ctx context.Context, c *client.Client, word string) []string

// names is what an argument names; nil: nothing that a node knows.
func names(cmd *cobra.Command, argument string) lookup {
	switch group := cmd.Parent().Name(); {
	case argument == "TOPIC":
		return topicsThere
	case argument == "SETTING":
		return func(context.Context, *client.Client, string) []string { return SettingNames() }
	case argument == "NAME" && group == "schedule" && cmd.Name() != "put":
		return schedulesThere
	case argument == "ID" && group == "token":
		return tokensThere
	case cmd.Name() == "admit":
		return removedThere
	case cmd.Name() == "uninvite":
		return invitationsThere
	case argument == "NODE" || argument == "OLD" || argument == "NEW" || argument == "ID" && group == "cluster":
		return membersThere
	case argument == "ID" && group == "tarry":
		return jobsThere
	}
	return nil
}

// namesOf asks a node. When none answers there are no names.
func namesOf(cmd *cobra.Command, word string, ask lookup) (found []cobra.Completion) {
	text := func(flag string) string {
		v, _ := cmd.Flags().GetString(flag)
		return v
	}
	tls := ClientTLS{text("tls-ca"), text("tls-cert"), text("tls-key")}
	certificates, err := tls.Config()
	if err != nil {
		return nil
	}
	token := ClientToken{File: text("token-file")}
	token.OverHTTP, _ = cmd.Flags().GetBool("token-over-http")
	c, err := client.New(NodesAt(text("addr")), append(token.Options(), client.WithPatience(0), client.WithTLS(certificates))...)
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	for _, name := range ask(ctx, c, word) {
		if strings.HasPrefix(name, word) {
			found = append(found, name)
		}
	}
	return found
}

// firstPage returns the names of the first thousand things of a list.
func firstPage[T any](list iter.Seq2[T, error], name func(T) string) (names []string) {
	for one, err := range list {
		if err == nil {
			names = append(names, name(one))
		}
		if len(names) == BatchJobs {
			break
		}
	}
	return names
}

func topicsThere(ctx context.Context, c *client.Client, _ string) (names []string) {
	return firstPage(c.Topics().List(ctx, client.PageOptions{}), func(t client.Topic) string { return t.Name })
}

func schedulesThere(ctx context.Context, c *client.Client, _ string) (names []string) {
	return firstPage(c.Schedules().List(ctx, client.PageOptions{}), func(s client.ScheduleInfo) string { return s.Name })
}

func membersThere(ctx context.Context, c *client.Client, _ string) (names []string) {
	members, _ := c.Cluster().Members(ctx)
	for _, m := range members {
		names = append(names, m.ID)
	}
	return names
}

func removedThere(ctx context.Context, c *client.Client, _ string) (names []string) {
	removed, _ := c.Cluster().Removed(ctx)
	for _, n := range removed {
		names = append(names, n.ID)
	}
	return names
}

func invitationsThere(ctx context.Context, c *client.Client, _ string) (names []string) {
	list, _ := c.Cluster().Invitations(ctx)
	for _, v := range list {
		names = append(names, v.ID)
	}
	return names
}

func tokensThere(ctx context.Context, c *client.Client, _ string) (names []string) {
	return firstPage(c.Tokens().List(ctx), func(k client.Token) string { return k.ID })
}

// jobsThere finds jobs by the beginning of their ids, which must not be empty.
func jobsThere(ctx context.Context, c *client.Client, word string) (names []string) {
	if word == "" {
		return nil
	}
	page, _, _ := c.JobsPage(ctx, client.ListOptions{Filter: client.Filter{IDPrefix: word}, Page: completeJobs}, "")
	for _, j := range page {
		names = append(names, j.ID)
	}
	return names
}

func FlagOf(s *job.Setting) string { return strings.ReplaceAll(s.Name, "_", "-") }

// SettingNames are the settings as flags.
func SettingNames() (names []string) {
	for _, s := range job.Settings {
		names = append(names, FlagOf(s))
	}
	return names
}
