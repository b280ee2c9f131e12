package network

import (
	"fmt"
	"os/exec"
	"syscall"
)

// canUnshare tries, in a process of its own, what root in a container often may
// not do.
func canUnshare() error {
	cmd := exec.Command("ip", "link", "set", "lo", "up")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("a network namespace cannot be made: %w: %.200s", err, out)
	}
	return nil
}
