package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/api/wire"
	"tarry/job"
)

// listMembers are the names of all members of requests that hold a list or a map. It
// fails when one of them is decoded by something that has no limit.
func listMembers(t *testing.T) []string {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || f.Tag == nil {
				return true
			}
			tag, err := strconv.Unquote(f.Tag.Value)
			require.NoError(t, err)
			name := reflect.StructTag(tag).Get("json")
			ast.Inspect(f.Type, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ArrayType, *ast.MapType:
					t.Errorf("%s: %s is a list or a map without a limit; use list or headers", e.Name(), name)
				case *ast.Ident:
					if n.Name == "list" || n.Name == "headers" {
						names[name] = true
					}
				}
				return true
			})
			return true
		})
	}
	var sorted []string
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

// hostileShapes are the texts of a list or an object, up to about the size given: of
// the shortest items, and of names that differ.
var hostileShapes = []func(size int) []byte{
	repeated("{}"), repeated("0"), repeated(`""`), repeated("[]"), repeated("null"),
	func(size int) []byte {
		b := []byte("{")
		for i := 0; len(b) < size; i++ {
			b = fmt.Appendf(b, `"%x":"",`, i)
		}
		return append(b, `"":""}`...)
	},
}

func repeated(item string) func(int) []byte {
	return func(size int) []byte {
		n := max(size/(len(item)+1), 1)
		return []byte("[" + strings.Repeat(item+",", n-1) + item + "]")
	}
}

// A request costs a small multiple of the bytes that it may have, whatever list or
// map a client fills them with: in each call that takes one.
func TestMemoryOfHostileLists(t *testing.T) {
	const most = 20 // times the limit of the call
	s := &server{}
	h := New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, Hosts: []string{"*"}, MaxBufferedBytes: 1 << 30, Access: anybodyMayDoEverything()})
	measured := map[string]bool{}
	members := append(listMembers(t), "body")
	for _, rt := range s.routes() {
		for method, endpoint := range rt.methods {
			if !endpoint.body || sends(method, wire.PathOf(rt.path)) != "" {
				continue // no request, or none that is decoded here
			}
			path := strings.NewReplacer("{id:batch}", "batch", "{id:kick}", "kick", "{id}", "a", "{topic}", "t", "{name}", "s").Replace(rt.path)
			limit := requestLimit(t, h, method, path)
			for _, around := range []string{
				`{%s}`, `{"jobs":[{%s}]}`, `{"then":[{%s}]}`, `{"filter":{%s}}`, `{"job":{%s}}`, `{"backoff":{%s}}`, `{"rules":[{%s}]}`, `{"jobs":[{"backoff":{%s}}]}`,
				`{"command":"add",%s}`, `{"spec":"@every 1h","job":{"topic":"t",%s}}`,
			} {
				if strings.HasPrefix(around, `{"rules"`) && !strings.HasPrefix(path, "/v1/tokens/") {
					continue // no other call has rules
				}
				for _, name := range members {
					for i, shape := range hostileShapes {
						body := func(size int) string {
							return fmt.Sprintf(around, `"`+name+`":`+string(shape(size-100)))
						}
						if !understood(h, method, path, body(0)) {
							continue
						}
						measured[name] = true
						// One that is too long, and one that is nearly so.
						for _, size := range []int{limit, min(limit, job.HardMaxBodyBytes)} {
							r, w := httptest.NewRequest(method, path, strings.NewReader(body(size))), httptest.NewRecorder()
							cost := allocated(func() { h.ServeHTTP(w, r) })
							require.Less(t, cost, most*limit, "%s %s %s, shape %d: %s", method, path, fmt.Sprintf(around, name), i, w.Body)
						}
					}
				}
			}
		}
	}
	for _, name := range members {
		require.Contains(t, measured, name, "no call takes it as it is sent here")
	}
}

// requestLimit is the most bytes that a call takes, as it says itself.
func requestLimit(t *testing.T, h http.Handler, method, path string) int {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.ContentLength = 1 << 40
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	said := regexp.MustCompile(`more than (\d+) bytes`).FindStringSubmatch(w.Body.String())
	require.NotNil(t, said, "%s %s: %s", method, path, w.Body)
	limit, err := strconv.Atoi(said[1])
	require.NoError(t, err)
	return limit
}

var notUnderstood = regexp.MustCompile(`bad_json|is not a field of |must be .*, not `)

// understood reports whether a call takes a request of this form.
func understood(h http.Handler, method, path, body string) bool {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return !notUnderstood.Match(w.Body.Bytes())
}

// allocated is how many bytes f allocates, also those that are free again.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}
