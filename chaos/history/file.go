package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// WriteFile keeps a history as one JSON object a line.
func WriteFile(path string, ops []Op) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	encoder := json.NewEncoder(w)
	for i := range ops {
		if err := encoder.Encode(&ops[i]); err != nil {
			return fmt.Errorf("keep the history: %w", err)
		}
	}
	return w.Flush()
}

// ReadFile reads what WriteFile wrote.
func ReadFile(path string) ([]Op, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a history: %w", err)
	}
	defer f.Close()
	var ops []Op
	decoder := json.NewDecoder(bufio.NewReader(f))
	for {
		var op Op
		switch err := decoder.Decode(&op); {
		case errors.Is(err, io.EOF):
			return ops, nil
		case err != nil:
			return nil, fmt.Errorf("read operation %d of %s: %w", len(ops)+1, path, err)
		}
		ops = append(ops, op)
	}
}
