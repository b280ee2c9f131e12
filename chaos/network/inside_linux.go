package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// inside calls f in another network namespace. A socket that f opens stays
// there. Namespaces are a property of threads, hence the lock; f starts no
// goroutine.
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
		// The thread stays locked, so it ends with its goroutine and runs
		// nothing else.
		return errors.Join(fmt.Errorf("leave namespace %s: %w", namespace, back), err)
	}
	runtime.UnlockOSThread()
	return err
}
