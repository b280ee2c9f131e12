package logstore

import (
	"errors"
	"os"
	"syscall"

	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// syncData makes a file's data durable, and its size, which is needed to read the data.
func syncData(f types.WritableFile) error {
	if d, ok := f.(dataSyncer); ok {
		return d.SyncData()
	}
	c, ok := f.(syscall.Conn) // an *os.File, also inside raft-wal's
	if !ok {
		return f.Sync()
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			if failed = unix.Fdatasync(int(fd)); !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, os.NewSyscallError("fdatasync", failed))
}
