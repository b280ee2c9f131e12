// Command tarry is the whole of Tarry in one binary: the server of a node, a
// client for producers and consumers, the operators' commands and the load
// generator.
//
// Start at the table in main.go. Server: server.go and config.go. Clients and
// operators: flags.go for what they share, then the file of the command.
package main

import (
	"context"
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

// section is a group of commands in the help.
type section struct {
	title    string
	commands []command
}

func sections() []section {
	return []section{
		{"Run a node", []command{
			{"server", "run a node until it is told to stop", runServer},
		}},
		{"", []command{
			{"version", "print the version of this binary", runVersion},
		}},
	}
}

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run finds the command and gives it the rest of the command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return exitOK
	}
	for _, s := range sections() {
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
	for _, s := range sections() {
		fmt.Fprintf(w, "\n%s\n", s.title)
		for _, c := range s.commands {
			fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(w, "\ntarry COMMAND --help says more about one command.\n")
}

func runVersion(_ context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(stderr, "tarry version takes no arguments")
		return exitUsage
	}
	fmt.Fprintln(stdout, "tarry", version)
	return exitOK
}
