package localcluster

import "syscall"

// processAttributes ties a node's life to ours, so that a killed test run leaves
// nothing behind.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
