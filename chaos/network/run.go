package network

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// ip runs lines of `ip`, all in one process, inside a namespace; "" is the
// machine's own. It stops at the first line that fails.
func ip(ctx context.Context, namespace string, lines ...string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	return run(ctx, strings.Join(lines, "\n")+"\n", "ip", args...)
}

// run runs a command with an input. The error has its output.
func run(ctx context.Context, input, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %.300s (input: %.300s)", name, strings.Join(args, " "), err, out, input)
	}
	return nil
}
