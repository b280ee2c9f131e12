package api

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/api/wire"
	"tarry/push"
)

const conceptsPath = "../docs/http-api.md"

var update = flag.Bool("update", false, "write the answers into the pages of docs; read the difference before you commit it")

func TestEveryRouteIsDocumentedAndTheReverse(t *testing.T) {
	text, err := os.ReadFile(referencePath)
	require.NoError(t, err)
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^### `([A-Z]+ /.*)`$").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1])
	}
	served := append(servedCalls(), "GET /metrics")
	slices.Sort(documented)
	slices.Sort(served)
	require.Equal(t, served, documented)
}

// servedCalls returns the method and path of each route.
func servedCalls() (served []string) {
	for _, rt := range (&server{}).routes() {
		for method := range rt.methods {
			path := wire.PathOf(rt.path)
			if path != rt.path && method != http.MethodPost {
				continue // a job with that id
			}
			served = append(served, method+" "+path)
		}
	}
	return served
}

func TestEveryErrorIsDocumented(t *testing.T) {
	text, err := os.ReadFile(conceptsPath)
	require.NoError(t, err)
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9]{3}) ").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2]
	}
	served := map[string]string{}
	for code, status := range statuses {
		served[string(code)] = strconv.Itoa(status)
	}
	require.Equal(t, served, documented)
}

// example is a curl command and the answer that is printed below it.
var example = regexp.MustCompile("(?s)```sh\ncurl (.*?)\n```\n```\n(.*?)```\n")

// instants differ from run to run; a due_at that the client gave does not.
var instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z(-now\d+)?`)

func TestTheExamplesOfTheDocumentation(t *testing.T) {
	for path, least := range map[string]int{referencePath: 30, "../docs/retries.md": 8, "../docs/schedules.md": 15, "../docs/limits.md": 26, "../docs/history.md": 9, "../docs/headers.md": 7, "../docs/tracing.md": 2} {
		t.Run(path, func(t *testing.T) { require.GreaterOrEqual(t, runExamples(t, path), least, "examples were found") })
	}
}

// runExamples runs the examples of a page, in their order, against a new queue, and returns
// their number.
func runExamples(t *testing.T, path string) int {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	allow, err := push.ParseAllow("hooks.example.com") // as docs/push.md says
	require.NoError(t, err)
	h := New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, About: apitest.About(), Hosts: []string{"*"}, CheckPush: allow.Check,
		RecentLog: func() []string {
			return []string{"time=2023-11-14T22:13:20.000Z level=INFO msg=leading node=n1 shard=0"}
		}})
	count := 0
	updated := example.ReplaceAllStringFunc(string(text), func(block string) string {
		count++
		m := example.FindStringSubmatch(block)
		answer := answerOf(t, h, curl(t, m[1]))
		was, is := instants.ReplaceAllString(m[2], "T"), instants.ReplaceAllString(answer, "T")
		if was == is || matchesElided(was, is) {
			return block
		}
		if !*update {
			require.Equal(t, was, is, "curl %s", m[1])
		}
		return "```sh\ncurl " + m[1] + "\n```\n```\n" + answer + "```\n"
	})
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(updated), 0o644))
	}
	return count
}

// matchesElided reports whether a response matches the printed one, in which "..." stands
// for omitted fields.
func matchesElided(printed, answer string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(printed), regexp.QuoteMeta("..."), ".*")
	return strings.Contains(printed, "...") && regexp.MustCompile("^"+pattern+"$").MatchString(answer)
}

func TestWhatAnExampleLeavesOut(t *testing.T) {
	require.True(t, matchesElided(`{"a":1,...,"d":4}`, `{"a":1,"b":2,"c":3,"d":4}`))
	require.False(t, matchesElided(`{"a":1,...,"d":4}`, `{"a":1,"b":2,"d":5}`))
	require.False(t, matchesElided(`{"a":1}`, `{"a":1}`), "it leaves nothing out")
}

func answerOf(t *testing.T, h http.Handler, r *http.Request) string {
	w := held(t, h, r)
	return strconv.Itoa(w.Code) + " " + http.StatusText(w.Code) + "\n" + w.Body.String()
}

// curl makes the request that a curl command line sends, of the few options
// that the documentation uses.
func curl(t *testing.T, line string) *http.Request {
	method, path, data := "", "", ""
	header := http.Header{}
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], "'")
		switch {
		case word == "-N":
		case word == "-H":
			i++
			name, value, found := strings.Cut(strings.Trim(words[i], "'"), ": ")
			require.True(t, found, line)
			header.Set(name, value)
		case word == "-X":
			i++
			method = words[i]
		case word == "-d", word == "--data-binary":
			i++
			data = strings.Trim(words[i], "'")
		default:
			require.True(t, strings.HasPrefix(word, "localhost:7300/"), line)
			path = strings.TrimPrefix(word, "localhost:7300")
		}
	}
	if method == "" {
		method = http.MethodGet
		if data != "" {
			method = http.MethodPost
		}
	}
	r := httptest.NewRequest(method, path, strings.NewReader(data))
	r.Header = header
	return r
}
