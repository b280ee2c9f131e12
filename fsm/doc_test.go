package fsm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The package comments of fsm and fsm/store list all their files.
func TestPackageCommentNamesEveryFile(t *testing.T) {
	row := regexp.MustCompile(`(?m)^//\t([a-z_]+\.go) +\S`)
	for _, dir := range []string{".", "store"} {
		doc, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		require.NoError(t, err)
		named := []string{filepath.Join(dir, "doc.go")}
		for _, m := range row.FindAllSubmatch(doc, -1) {
			named = append(named, filepath.Join(dir, string(m[1])))
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		var code []string
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				code = append(code, f)
			}
		}
		require.ElementsMatch(t, code, named)
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
		files := regexp.MustCompile(`[a-z_]+\.go`).FindAllString(head, -1)
		require.NotEmpty(t, files, script)
		for _, f := range files {
			require.FileExists(t, f, script)
		}
	}
}
