package fsm

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// The record of a node that was removed is a version byte and when that was, in Unix
// milliseconds of the FSM clock.
const removedVersion = 1

func appendRemoved(b []byte, atMS int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, removedVersion), uint64(atMS))
}

func decodeRemoved(value []byte) (atMS int64, err error) {
	if err := checkVersion("record of a removed node", value, removedVersion); err != nil {
		return 0, err
	}
	if len(value) != 1+8 {
		return 0, fmt.Errorf("record of a removed node of %d bytes: %w", len(value), errShort)
	}
	return int64(binary.BigEndian.Uint64(value[1:])), nil
}

// readRemoved reads when each removed node was removed, by node id.
func readRemoved(r pebble.Reader) (map[string]int64, error) {
	removed := make(map[string]int64)
	err := scan(r, []byte{spaceRemoved}, []byte{spaceRemoved + 1}, func(key, value []byte) error {
		at, err := decodeRemoved(value)
		if err != nil {
			return fmt.Errorf("node %.64q: %w", key[1:], err)
		}
		removed[string(key[1:])] = at
		return nil
	})
	return removed, err
}
