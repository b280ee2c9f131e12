//go:build !linux

package localcluster

import "syscall"

// processAttributes keeps a terminal's Ctrl-C away from the nodes; their owner
// stops them.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
