package network

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Available returns an error if networks cannot be built here.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	for _, tool := range []string{"ip", "iptables-restore"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("network namespaces need the command %s: %w", tool, err)
		}
	}
	return canUnshare()
}
