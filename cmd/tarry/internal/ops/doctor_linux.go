package ops

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// clockSynced reports whether the kernel's clock follows a time server; known is false if that
// cannot be told.
func clockSynced() (synced, known bool) {
	const unsynchronized = 0x40 // STA_UNSYNC
	var t syscall.Timex
	if _, err := syscall.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unsynchronized == 0, true
}

// mountOf returns the type of the file system that has a path, and its options.
func mountOf(path string) (kind string, options []string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", nil
	}
	defer f.Close()
	longest := -1
	for lines := bufio.NewScanner(f); lines.Scan(); {
		own, of, found := strings.Cut(lines.Text(), " - ")
		fields, source := strings.Fields(own), strings.Fields(of)
		if !found || len(fields) < 6 || len(source) < 3 {
			continue
		}
		at := fields[4]
		below := path == at || strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/")
		if below && len(at) >= longest { // of two at one place the later one is seen
			longest, kind = len(at), source[0]
			options = append(strings.Split(fields[5], ","), strings.Split(source[2], ",")...)
		}
	}
	return kind, options
}
