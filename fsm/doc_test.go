package fsm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the comment of a package says of files is about files that there are.
func TestCommentsNameExistingFiles(t *testing.T) {
	for _, doc := range []string{"doc.go", "store/doc.go", "internal/record/record.go"} {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		comment, _, _ := strings.Cut(string(text), "\npackage ")
		files := regexp.MustCompile(`[a-z_/]+\.go\b`).FindAllString(comment, -1)
		require.NotEmpty(t, files, doc)
		for _, f := range files {
			require.FileExists(t, filepath.Join(filepath.Dir(doc), f), doc)
		}
	}
}

// Each script names the files whose rules it shows.
func TestScriptsNameExistingFiles(t *testing.T) {
	scripts, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		head, _, _ := strings.Cut(string(text), "\nsubtest ")
		files := regexp.MustCompile(`[a-z_/]+\.go`).FindAllString(head, -1)
		require.NotEmpty(t, files, script)
		for _, f := range files {
			require.FileExists(t, f, script)
		}
	}
}
