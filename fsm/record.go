package fsm

import (
	"errors"
	"fmt"
	"slices"
)

// errShort is returned when a record ends before its last field.
var errShort = errors.New("record is too short")

// checkVersion returns an error if this release cannot read the record.
func checkVersion(what string, b []byte, known ...byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%s is empty: %w", what, errShort)
	}
	if !slices.Contains(known, b[0]) {
		return fmt.Errorf("%s has format version %d, this release knows only %d: it was written by another release; run that one", what, b[0], known[0])
	}
	return nil
}
