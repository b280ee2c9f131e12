package logstore

import (
	"errors"
	"fmt"
)

// Kind names the library that keeps a log. It is chosen when the log is made.
type Kind string

// The kinds of log. These names are flags and stand on disk.
const (
	RaftWAL    Kind = "raft-wal"
	RaftBoltDB Kind = "raft-boltdb"
)

// ErrUnknownKind is the failure to open a log of a kind that this release does not have.
var ErrUnknownKind = errors.New("unknown log store")

// DefaultKind is that of logs for which nothing was chosen.
const DefaultKind = RaftWAL

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	switch name := Kind(text); name {
	case RaftWAL, RaftBoltDB:
		*k = name
		return nil
	}
	return fmt.Errorf("%q is no log store; it takes %s or %s", text, RaftWAL, RaftBoltDB)
}
