// Package golden keeps the bytes of a format as a release wrote them. Each test of a
// format compares what is written today with such a file, and reads the file. A file is
// never changed: a format that changes gets another version, and a file beside the old one,
// which stays readable (docs/formats.md). Start at [Frozen]. It may know nothing of Tarry.
package golden

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("golden.update", false, "write the golden files that are not there yet")

const bytesPerLine = 32

// Frozen checks that written is what the file testdata/name.hex has, and returns the
// file's bytes, for the test to read. The file has hexadecimal digits; lines that begin
// with # are comments.
func Frozen(t *testing.T, name string, written []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name+".hex")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *update {
		text = encode(written)
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		err = os.WriteFile(path, text, 0o644)
	}
	require.NoError(t, err, "a new format gets its golden file from go test -golden.update")
	frozen, err := decode(string(text))
	require.NoError(t, err, path)
	if !bytes.Equal(frozen, written) {
		t.Fatalf("what is written today differs from %s, which a release wrote.\nNodes of two releases exchange these bytes, or a node reads them from its disk after an upgrade:\n"+
			"give the format another version, write it only when the cluster version allows it, keep this file readable, and add a file for the new version (docs/formats.md).\n\nnow:\n%s", path, encode(written))
	}
	return frozen
}

func encode(b []byte) []byte {
	var text []byte
	for line := range slices.Chunk(b, bytesPerLine) {
		text = append(hex.AppendEncode(text, line), '\n')
	}
	return text
}

func decode(text string) ([]byte, error) {
	var digits strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	return hex.DecodeString(digits.String())
}
