package job

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// RestoreOptions are the options of a restore into a running cluster.
type RestoreOptions struct {
	FromNow   bool   // every delay is longer by the time since the backup
	ResetAuth bool   // removes all tokens; otherwise those of the running cluster stay
	DryRun    bool   // only checks the backup and counts
	Cluster   string // the id that the cluster must have; empty: any
}

// Replaced is what a restore into a running cluster has done, or would do.
type Replaced struct {
	BackupCluster string    // the id of the cluster that was backed up
	BackupIndex   uint64    // of that cluster's log
	BackupTime    time.Time // by that cluster's clock
	Index         uint64    // of this cluster's log, from which on it has the backup's state; 0: dry run
	Shift         time.Duration
	Before, After JobCounts
	Tokens        int // of clients, afterwards
}

// JobCounts are the numbers of topics, and of jobs by state.
type JobCounts struct{ Topics, Delayed, Ready, Reserved, Dead, Retained uint64 }

// BackupBase is an earlier backup that has a part of the state already.
type BackupBase struct {
	ID      string // of its file
	Name    string // of its file
	TakenMS int64  // when it was made, Unix milliseconds
	Store   string // the id of the store that it is of
	Files   map[string]int64
}

const (
	// MaxBackupBase bounds a BackupBase as text, in bytes: that of some hundred thousand files.
	MaxBackupBase = 16 << 20
	maxBaseName   = 255
)

// Append appends the base as text: a line "tarry-base 1 ID TAKEN-MS STORE", a line with the name
// of its file, and for each file of the store a line "NAME SIZE".
func (b *BackupBase) Append(to []byte) []byte {
	to = fmt.Appendf(to, "tarry-base 1 %s %d %s\n%s\n", b.ID, b.TakenMS, b.Store, b.Name)
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		to = fmt.Appendf(to, "%s %d\n", name, b.Files[name])
	}
	return to
}

// ParseBackupBase reads what Append has written.
func ParseBackupBase(text string) (*BackupBase, error) {
	b := &BackupBase{Files: map[string]int64{}}
	first, rest, _ := strings.Cut(text, "\n")
	if n, err := fmt.Sscanf(first, "tarry-base 1 %32s %d %64s", &b.ID, &b.TakenMS, &b.Store); n != 3 || err != nil {
		return nil, Errorf(CodeInvalid, "the request begins with %.40q; it takes tarry-base 1, an id, an instant and the id of a store", first)
	}
	b.Name, rest, _ = strings.Cut(rest, "\n")
	if len(b.Name) > maxBaseName || !utf8.ValidString(b.Name) {
		return nil, Errorf(CodeInvalid, "the request has a name of %d bytes for the base; it takes up to %d, as UTF-8", len(b.Name), maxBaseName)
	}
	for line := range strings.Lines(rest) {
		name, size, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 || name == "" {
			return nil, Errorf(CodeInvalid, "the request has the line %.80q; it takes the name of a file and its size", line)
		}
		b.Files[name] = n
	}
	return b, nil
}

// LogOptions is which part of the log a reader wants.
type LogOptions struct {
	ClusterID string // whose log it is
	// After and Term are the last entry that the reader has.
	After, Term uint64
}

// LogWriter takes a stream of the log. Flush sends what was written.
type LogWriter interface {
	io.Writer
	Flush() error
}
