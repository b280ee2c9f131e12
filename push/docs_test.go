package push

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// verify is what docs/push.md shows.
func verify(secret string, q *http.Request, body []byte) bool {
	at, err := strconv.ParseInt(q.Header.Get("Tarry-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false // a post that somebody kept and repeats
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d\n%s\n", at, q.Header.Get("Tarry-Job-Id"))
	mac.Write(body)
	want := "v1=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(want), []byte(q.Header.Get("Tarry-Signature")))
}

func TestTheReceiverOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/push.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(page), "```go\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	source, err := os.ReadFile("docs_test.go")
	require.NoError(t, err)
	require.Contains(t, string(source), shown, "the page shows what runs here")

	j := &jobpb.Reserved{Id: "a b", Topic: "t", Body: []byte("body"), Attempts: 1}
	made := func(at time.Time) (*http.Request, []byte) {
		q, err := newRequest(t.Context(), &jobpb.PushTarget{Secret: secret}, "https://hooks.example.com", j, at)
		require.NoError(t, err)
		body, err := io.ReadAll(q.Body)
		require.NoError(t, err)
		return q, body
	}
	q, body := made(time.Now())
	require.True(t, verify(secret, q, body))
	require.False(t, verify("another secret", q, body))
	require.False(t, verify(secret, q, []byte("another body")))
	for _, h := range []string{"Tarry-Job-Id", "Tarry-Timestamp", "Tarry-Signature"} {
		q, body := made(time.Now())
		q.Header.Set(h, q.Header.Get(h)+"1")
		require.False(t, verify(secret, q, body), h)
	}
	q, body = made(time.Now().Add(-time.Hour))
	require.False(t, verify(secret, q, body), "it is old")
}

// The list in the documentation allows what the documentation describes.
func TestTheListOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/push.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(page), "--push-allow '")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "'")
	a := parse(t, list)
	require.Len(t, a.names, 2)
	require.Len(t, a.blocks, 1)
}
