package secretkeys

import (
	"bytes"
	"fmt"
	"slices"

	"tarry/internal/keyfile"
)

const (
	// MaxKeys bounds the keys of a node: one, and a few while they are replaced.
	MaxKeys = 8
	maxFile = 4 << 10
)

// Parse reads what a file has: a key in base64 on each line, the first one seals. Lines that
// begin with # are comments.
func Parse(data []byte) (keys []Key, err error) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		k, err := parseKey(string(line))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w: each line takes one key, as tarry secrets keygen prints it", number, err)
		case slices.Contains(keys, k):
			return nil, fmt.Errorf("line %d: key %s is there twice", number, k.ID())
		}
		keys = append(keys, k)
	}
	if n := len(keys); n < 1 || n > MaxKeys {
		return nil, fmt.Errorf("there are %d keys; it takes 1 to %d", n, MaxKeys)
	}
	return keys, nil
}

// Create makes a file with a key. It fails with fs.ErrExist if there is a file.
func Create(path string, k Key) error {
	return keyfile.Create(path, []byte("# The keys that seal secrets, the first one seals. Keep them secret, and apart from backups.\n"+k.Text()+"\n"))
}
