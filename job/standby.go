package job

import "io"

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
