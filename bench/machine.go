package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes where the figures come from, as far as Linux tells.
func Machine() string {
	return fmt.Sprintf("%d cores (%s), %s MiB of memory, %s %s, %s",
		runtime.NumCPU(), field("/proc/cpuinfo", "model name"), kibToMiB(field("/proc/meminfo", "MemTotal")),
		runtime.GOOS, kernel(), runtime.Version())
}

// field finds "name : value" in a file of /proc; "unknown" when it is not there.
func field(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func kibToMiB(v string) string {
	var kib int
	if _, err := fmt.Sscanf(v, "%d kB", &kib); err != nil {
		return v
	}
	return fmt.Sprint(kib >> 10)
}

func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
