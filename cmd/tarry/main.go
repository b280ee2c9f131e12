// Command tarry is the whole of Tarry in one binary: the server of a node, a
// client for producers and consumers, the operators' commands and the load
// generator.
//
// Start at the table in main.go. Server: server.go and config.go. Clients and
// operators: flags.go and values.go for what they share, then the file of the
// command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// version is set by the linker: -X main.version=...
var version = "development"

// Exit codes, the same for all commands.
const (
	exitOK     = 0
	exitFailed = 1 // the request was made and failed, or could not be made
	exitUsage  = 2 // the command line is wrong; nothing was done
)

// command is one word of the command line.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// clientEntry is a command that talks to a node.
type clientEntry struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string, std streams) int
}

// reading makes commands of entries that read from in.
func reading(in io.Reader, entries ...clientEntry) []command {
	var list []command
	for _, e := range entries {
		list = append(list, command{e.name, e.summary, func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
			return e.run(ctx, args, streams{in, stdout, stderr})
		}})
	}
	return list
}

// section is a group of commands in the help.
type section struct {
	title    string
	commands []command
}

func sections(in io.Reader) []section {
	return []section{
		{"Run a node", []command{
			{"server", "run a node until it is told to stop", runServer},
		}},
		{"Producers and consumers", reading(in,
			clientEntry{"add", "add a job", runAdd},
			clientEntry{"reserve", "reserve ready jobs", runReserve},
			clientEntry{"stream", "print jobs as they become ready", runStream},
			clientEntry{"finish", "end a job that was worked on", step("finish",
				"Ends a job that was worked on.", "tarry finish mail-7 --token 0-12-1", "token", finishStep)},
			clientEntry{"release", "give a reserved job back", step("release",
				"Gives a reserved job back, to be handed out again.", "tarry release mail-7 --delay 5m --reason 'mail server down'",
				"token delay priority reason", releaseStep)},
			clientEntry{"touch", "prolong a reservation", step("touch",
				"Lets a reservation last longer, counted from now.", "tarry touch mail-7 --ttr 10m", "token ttr", touchStep)},
			clientEntry{"bury", "set a reserved job aside", step("bury",
				"Sets a reserved job aside until it is kicked.", "tarry bury mail-7 --reason 'bad address'", "token priority reason", buryStep)},
			clientEntry{"kick", "make dead or delayed jobs ready", runKick},
			clientEntry{"delete", "delete a job in any state", step("delete",
				"Deletes a job in any state.", "tarry delete mail-7 --if-state delayed,ready", "token if", deleteStep)},
			clientEntry{"update", "change a job that is not reserved", step("update",
				"Changes what is named of a delayed, ready or dead job; the rest stays.", "tarry update mail-7 --delay 2h --priority 5",
				"due priority ttr-of-job attempts backoff headers body if", updateStep)},
			clientEntry{"move", "put a job, or those of a topic, into another topic", runMove},
			clientEntry{"purge", "delete the jobs of a topic that are in a state", runPurge},
			clientEntry{"list", "list jobs of a topic, or by the beginning of their ids", runList},
			clientEntry{"get", "show everything known of a job", runGet},
			clientEntry{"history", "show what happened to a job", runHistory},
			clientEntry{"topics", "list topics with their jobs by state", runTopics},
			clientEntry{"stats", "count the topics, and all jobs by state", runStats},
			clientEntry{"pause", "hold the jobs of a topic back", runPause},
			clientEntry{"resume", "end the pause of a topic", runResume},
			clientEntry{"schedule", "put, get, list, delete, preview, run, pause, resume, runs: recurring jobs", runSchedule},
			clientEntry{"topic", "get, set, unset: the settings of a topic", runTopic},
		)},
		{"Operators", reading(in,
			clientEntry{"cluster", "members, health, clock, verify, join, leave, remove, transfer-leadership", runCluster},
			clientEntry{"ready", "say whether a node can serve now", runReady},
		)},
		{"Others", []command{
			{"bench", "measure throughput, latency, lateness and failover", runBench},
			{"version", "print the version of this binary", runVersion},
		}},
	}
}

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run finds the command and gives it the rest of the command line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = &harmlessWriter{to: stdout}, &harmlessWriter{to: stderr}
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return exitOK
	}
	for _, s := range sections(stdin) {
		for _, c := range s.commands {
			if c.name == args[0] {
				return c.run(ctx, args[1:], stdout, stderr)
			}
		}
	}
	fmt.Fprintf(stderr, "tarry: there is no command %q; see tarry help\n", args[0])
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Usage: tarry COMMAND [flags] [arguments]\n\nA delay queue that survives the loss of a node.\n")
	for _, s := range sections(nil) {
		fmt.Fprintf(w, "\n%s\n", s.title)
		for _, c := range s.commands {
			fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(w, "\nRun tarry COMMAND --help for details of a command.\n")
}

func runVersion(_ context.Context, args []string, stdout, stderr io.Writer) int {
	err := readFlags(flag.NewFlagSet("tarry version", flag.ContinueOnError), args, "Usage: tarry version\n", stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "tarry version takes no arguments")
		return exitUsage
	}
	fmt.Fprintln(stdout, "tarry", version)
	return exitOK
}
