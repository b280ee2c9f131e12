package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// inside calls f in another network namespace. A socket that f opens stays there. A
// namespace belongs to a thread, so the goroutine is locked to its thread, and f must not
// start goroutines.
func inside(namespace string, f func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("find this thread's namespace: %w", err)
	}
	defer home.Close()
	away, err := os.Open(filepath.Join(namespaceDir, namespace))
	if err != nil {
		return fmt.Errorf("find namespace %s: %w", namespace, err)
	}
	defer away.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter namespace %s: %w", namespace, err)
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so it ends with its goroutine and runs no other.
		return errors.Join(fmt.Errorf("leave namespace %s: %w", namespace, back), err)
	}
	runtime.UnlockOSThread()
	return err
}
