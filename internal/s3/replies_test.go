package s3

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// store is a bucket whose lists a test chooses.
func store(t *testing.T, list http.HandlerFunc) *Bucket {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	server := httptest.NewServer(list)
	t.Cleanup(server.Close)
	b, err := (&Access{Endpoint: server.URL, Region: "here"}).Open("s3://backups")
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func entries(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "<Contents><Key>%s</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>", name)
	}
	return text.String()
}

func TestAPageOfAListIsBounded(t *testing.T) {
	for name, entry := range map[string]string{"large": entries(strings.Repeat("k", 1000)), "of nothing": "<Contents/>"} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			b := store(t, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "<ListBucketResult>")
				for sent.Load() < 64<<20 {
					n, err := io.WriteString(w, strings.Repeat(entry, 100))
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
				io.WriteString(w, "</ListBucketResult>")
			})
			_, err := b.List(t.Context(), 1<<30)
			require.ErrorIs(t, err, errLongReply)
		})
	}
}

func TestAListCountsAllNames(t *testing.T) {
	b := store(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<ListBucketResult>%s<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></ListBucketResult>", entries("a", "b/"))
	})
	list, err := b.List(t.Context(), 3)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "a", list[0].Name)
	_, err = b.List(t.Context(), 2)
	require.ErrorContains(t, err, "more than 2")
}

func TestAnObjectMayBeLargerThanOtherReplies(t *testing.T) {
	text := strings.Repeat("<", maxReply+1)
	b := store(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(text))
	})
	in, err := b.Get(t.Context(), "a")
	require.NoError(t, err)
	defer in.Close()
	n, err := io.Copy(io.Discard, in)
	require.NoError(t, err)
	require.Equal(t, int64(len(text)), n)
}
