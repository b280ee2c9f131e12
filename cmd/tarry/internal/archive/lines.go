package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"tarry/cmd/tarry/internal/cli"
)

// linePlace is a place in a file: behind a line.
type linePlace struct {
	Offset   int64  `json:"offset"` // bytes up to it
	Line     int    `json:"line"`
	LastLine string `json:"last_line"` // digest of the last line: it is still the same file
}

// lineReader reads a file line by line.
type lineReader struct {
	in        *bufio.Scanner
	most      int // bytes of a line
	linePlace     // behind the last line that was read
}

func newLineReader(r io.Reader, most int) *lineReader {
	l := &lineReader{in: bufio.NewScanner(r), most: most}
	l.in.Buffer(make([]byte, 64<<10), most)
	// Lines are read with their ends, so that their lengths are those in the file.
	l.in.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 && atEOF {
			end = len(data)
		}
		if end == 0 {
			return 0, nil, nil
		}
		return end, data[:end:end], nil
	})
	return l
}

// next returns the next line, which is valid until the following call. The error is io.EOF at
// the end; others name the line.
func (l *lineReader) next() ([]byte, error) {
	if !l.in.Scan() {
		switch err := l.in.Err(); {
		case err == nil:
			return nil, io.EOF
		case errors.Is(err, bufio.ErrTooLong):
			return nil, cli.LineError{Err: fmt.Errorf("line %d is longer than %d bytes, which is the limit", l.Line+1, l.most)}
		default:
			return nil, fmt.Errorf("line %d: %w", l.Line+1, err)
		}
	}
	line := l.in.Bytes()
	l.Offset += int64(len(line))
	l.Line++
	l.LastLine = digest(line)
	if l.Line == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, nil
}

// skipTo reads up to a place, and reports whether it is one of this file.
func (l *lineReader) skipTo(p linePlace) (same bool, err error) {
	for l.Offset < p.Offset {
		if _, err := l.next(); err == io.EOF {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return l.linePlace == p, nil
}

func digest(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:8])
}
