package network

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Available says why networks cannot be built here, or nil.
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
