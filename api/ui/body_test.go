package ui

import (
	"encoding/base64"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Indents of 20 KB of nested lists were a page of 200 MB, and of 64 KiB one of 600 MB.
func TestDeeplyNestedBodyMakesNoLargePage(t *testing.T) {
	const depth = 9990
	nested := strings.Repeat("[", depth) + "%" + strings.Repeat("]", depth)
	for name, inner := range map[string]string{"deep": "", "deep and wide": "1" + strings.Repeat(",1", 20_000)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			body := strings.Replace(nested, "%", inner, 1)
			// As bytes, which the API does not decode, as a beanstalkd client would.
			r.add(`{"topic":"t","id":"a","delay":9,"body_base64":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `"}`)
			for _, address := range []string{"/ui/job?id=a", "/ui/job?id=a&body=json", "/ui/job/edit?id=a"} {
				w := r.get(address)
				require.Equal(t, http.StatusOK, w.Code)
				require.Less(t, w.Body.Len(), 1<<20)
				require.Contains(t, w.Body.String(), body[:100], "it is shown as text")
			}
		})
	}
}

func TestJSONBodiesAreIndented(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":[1,{}],"b":"\u003c"}`: "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"\\u003c\"\n}",
		`12345678901234567890.10`:   "12345678901234567890.10",
		`"x"`:                       `"x"`,
		`[1`:                        "",
		`1 2`:                       "",
		``:                          "",
		`{"a":1,"a":2}`:             "{\n  \"a\": 1,\n  \"a\": 2\n}",
	} {
		text, ok := indented([]byte(body))
		require.Equal(t, want != "", ok, body)
		if ok {
			require.Equal(t, want, text)
		}
	}
}

func TestDeeplyNestedBodyTakesLittleMemory(t *testing.T) {
	const depth = 9990
	body := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, ok := indented(body)
	runtime.ReadMemStats(&after)
	require.False(t, ok)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
