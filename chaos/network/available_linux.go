package network

import (
	"fmt"
	"os/exec"
	"syscall"
)

// canUnshare tries, in a separate process, to create a namespace, which root in a container
// often may not do.
func canUnshare() error {
	cmd := exec.Command("ip", "link", "set", "lo", "up")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot create a network namespace: %w: %.200s", err, out)
	}
	return nil
}
