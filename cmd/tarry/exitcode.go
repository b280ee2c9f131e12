package main

import (
	"errors"
	"fmt"
)

// Exit codes, the same for all commands.
const (
	exitOK     = 0
	exitFailed = 1 // the request was made and failed, or could not be made
	exitUsage  = 2 // the command line is wrong; nothing was done
)

// exit ends a command with its code, without a message: the command has printed one.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode is the code for the error of a command.
func exitCode(err error) int {
	var code exit
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}
