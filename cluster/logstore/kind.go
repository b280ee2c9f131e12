package logstore

import (
	"errors"
	"fmt"
)

// Kind names the library that keeps a log. It is chosen when the log is made.
type Kind string

// The kinds of log. Their names are values of a flag, and are on disk.
const (
	RaftWAL    Kind = "raft-wal"
	RaftBoltDB Kind = "raft-boltdb"
)

// ErrUnknownKind is the failure to open a log of a kind that this release does not have.
var ErrUnknownKind = errors.New("unknown log store")

// DefaultKind is the kind of a log for which none was chosen.
const DefaultKind = RaftWAL

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	switch name := Kind(text); name {
	case RaftWAL, RaftBoltDB:
		*k = name
		return nil
	}
	return fmt.Errorf("log store: must be %s or %s, got %q", RaftWAL, RaftBoltDB, text)
}
