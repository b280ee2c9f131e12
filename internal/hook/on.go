//go:build chaos

package hook

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// environment begins the names of the variables; see the package comment.
const environment = "TARRY_HOOK_"

// clockEvery is how long an offset is used before it is read again.
const clockEvery = 20 * time.Millisecond

// active is the configuration, read once when the process starts: another hook needs a
// restart.
var active = mustRead(os.Getenv)

type hooks struct {
	mutant   string
	trailing uint64
	kill     killer
	clock    offset
}

// mustRead panics on an invalid environment: a harness that misspells a point must not
// conclude that the node survived the fault.
func mustRead(getenv func(string) string) *hooks {
	h, err := read(getenv)
	if err != nil {
		panic(err)
	}
	return h
}

func read(getenv func(string) string) (*hooks, error) {
	h := &hooks{mutant: getenv(environment + "MUTANT")}
	if h.mutant != "" && !slices.Contains(Mutants(), h.mutant) {
		return nil, fmt.Errorf("%sMUTANT is %q, which is no mutant", environment, h.mutant)
	}
	if v := getenv(environment + "TRAILING"); v != "" {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%sTRAILING is %q, which is no number of entries", environment, v)
		}
		h.trailing = n
	}
	h.clock.file = getenv(environment + "CLOCK")
	if at := getenv(environment + "KILL"); at != "" {
		name, count, ok := strings.Cut(at, ":")
		left, err := strconv.Atoi(count)
		if !ok || err != nil || left < 1 || !slices.Contains(Points(), name) {
			return nil, fmt.Errorf("%sKILL is %q, which is no POINT:COUNT", environment, at)
		}
		h.kill.name, h.kill.left = name, left
	}
	return h, nil
}

// killer ends the process at a point.
type killer struct {
	name string
	mu   sync.Mutex
	left int // passes until then
}

// due counts a pass and reports whether it is the last.
func (k *killer) due(name string) bool {
	if name != k.name {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left--
	return k.left == 0
}

// Point kills the process with SIGKILL if the environment asks for that here.
func Point(name string) {
	if active.kill.due(name) {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// offset is a clock's offset that is in a file.
type offset struct {
	file string
	mu   sync.Mutex
	read time.Time
	now  time.Duration
}

// get returns the offset, or the previous one if the file cannot be read, as while it is
// replaced.
func (o *offset) get(now time.Time) time.Duration {
	if o.file == "" {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read.IsZero() && now.Sub(o.read) < clockEvery {
		return o.now
	}
	o.read = now
	data, err := os.ReadFile(o.file)
	if err != nil {
		return o.now
	}
	if ms, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
		o.now = time.Duration(ms) * time.Millisecond
	}
	return o.now
}

// Clock returns the offset to add to the wall clock.
func Clock() time.Duration { return active.clock.get(time.Now()) }

// Mutant reports whether this process is the mutant of that name.
func Mutant(name string) bool { return active.mutant == name }

// Trailing returns how many entries of the log are kept behind a snapshot, and after how
// many the next is taken; 0: the server's defaults.
func Trailing() uint64 { return active.trailing }
