package s3

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPlaceNamesABucketAndAPrefix(t *testing.T) {
	for _, c := range []struct{ place, bucket, rest, says string }{
		{"s3://backups", "backups", "", ""},
		{"s3://backups/", "backups", "", ""},
		{"s3://backups/a/b", "backups", "a/b", ""},
		{"s3://backups/a/b/", "backups", "a/b", ""},
		{"s3://", "", "", "the name of the bucket"},
		{"s3:///a", "", "", "the name of the bucket"},
		{"s3://Backups/a", "", "", "the name of the bucket"},
		{"s3://backups//a", "", "", "empty between two slashes"},
		{"s3://backups/a//b", "", "", "empty between two slashes"},
		{"s3://backups/\xff", "", "", "the name in the bucket"},
	} {
		bucket, rest, err := Split(c.place)
		if c.says != "" {
			require.ErrorContains(t, err, c.says, c.place)
			continue
		}
		require.NoError(t, err, c.place)
		require.Equal(t, []string{c.bucket, c.rest}, []string{bucket, rest}, c.place)
	}
	require.True(t, Is("s3://b"))
	require.False(t, Is("/s3/b"))
}

func TestWhatIsWrongWithTheAccessIsNamed(t *testing.T) {
	dir := t.TempDir()
	open, none := filepath.Join(dir, "open"), filepath.Join(dir, "none")
	require.NoError(t, os.WriteFile(open, []byte("[default]\n"), 0o644))
	for _, c := range []struct {
		access Access
		says   string
	}{
		{Access{Endpoint: "store.example"}, `--s3-endpoint is "store.example"; it takes https://HOST`},
		{Access{Endpoint: "ftp://store.example"}, "--s3-endpoint is"},
		{Access{Endpoint: "https://store.example/path"}, "--s3-endpoint is"},
		{Access{Endpoint: "https://me:secret@store.example"}, `"https://me:xxxxx@store.example"`},
		{Access{CredentialsFile: none}, "--s3-credentials-file: open " + none},
		{Access{CredentialsFile: open}, "has mode 0644, so others can read or change it: chmod 600 " + open},
		{Access{CA: none}, "--s3-ca: open " + none},
		{Access{CA: open}, "has no certificate in PEM"},
	} {
		_, err := c.access.Open("s3://backups")
		require.ErrorContains(t, err, c.says)
	}
	b, err := (&Access{}).Open("s3://backups/a/")
	require.NoError(t, err)
	require.Equal(t, "s3://backups/a", b.String())
}
