package stranger

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// HTTPPort returns the attacks on the port for HTTP clients.
func HTTPPort() []Attack {
	return []Attack{
		{"http-garbage", httpGarbage},
		{"http-half-requests", httpHalfRequests},
		{"http-slow-bodies", httpSlowBodies},
		{"http-wrong-host", httpWrongHost},
		{"http-huge-lists", httpHugeLists},
		{"http-deep-json", httpDeepJSON},
		{"http-idle", httpIdle},
	}
}

// request returns a complete request with a correct Content-Length.
func (s *Stranger) request(method, path, host string, body []byte) []byte {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", method, path, host, len(body))
	return append([]byte(head), body...)
}

func httpGarbage(ctx context.Context, s *Stranger) error {
	for _, words := range [][]byte{
		s.noise(10), s.noise(100_000), []byte("GET"), []byte("\r\n\r\n\r\n"), []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		[]byte("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"), []byte("GET / HTTP/1.1\r\n\r\n"), []byte("GET / HTTP/9.9\r\nHost: x\r\n\r\n"),
		[]byte("GET /v1/topics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n"),
		[]byte("POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
		[]byte("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n"),
		s.request("POST", "/v1/jobs", "127.0.0.1", s.noise(1000)),
		s.request("POST", "/v1/jobs", "127.0.0.1", []byte(`{"topic":"\ud800","body":1e999999,"delay":-1}`)),
		s.request("POST", "/v1/stream", "127.0.0.1", []byte(`[[[`)),
	} {
		s.tell(ctx, s.Target.HTTP, words, 100*time.Millisecond)
	}
	return nil
}

func httpHalfRequests(ctx context.Context, s *Stranger) error {
	s.crowd(ctx, s.Target.HTTP, slices.Repeat([][]byte{[]byte("POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")}, 500), []byte("a"), crowdTime)
	return nil
}

// slowBodies is the number of requests that announce a body of each size. If announced
// bodies counted, these would use all memory for bodies.
const slowBodies = 20

func httpSlowBodies(ctx context.Context, s *Stranger) error {
	var heads [][]byte
	for size := 32 << 20; size > 16; size /= 16 {
		head := fmt.Sprintf("POST /v1/jobs/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", size)
		heads = append(heads, slices.Repeat([][]byte{[]byte(head)}, slowBodies)...)
	}
	s.crowd(ctx, s.Target.HTTP, heads, []byte(" "), crowdTime)
	return nil
}

// httpWrongHost is a browser's request for a page whose host name resolves to the node.
func httpWrongHost(ctx context.Context, s *Stranger) error {
	for _, path := range []string{"/v1/topics", "/v1/cluster/members", "/v1/stream"} {
		heard := s.tell(ctx, s.Target.HTTP, s.request("GET", path, "rebound.example", nil), time.Second)
		if bytes.HasPrefix(heard, []byte("HTTP/1.1 2")) {
			return believed("GET %s for the host rebound.example was answered with %.40q", path, heard)
		}
	}
	return nil
}

// hugeList is a list of empty objects of nine megabytes: far below the limit of a body, and
// far above the limit of a list.
const hugeList = 3_000_000

func httpHugeLists(ctx context.Context, s *Stranger) error {
	list := []byte(`{"jobs":[{}` + strings.Repeat(",{}", hugeList) + `]}`)
	names := []byte(`{"topics":["a"` + strings.Repeat(`,""`, hugeList) + `],"max":1}`)
	for path, body := range map[string][]byte{"/v1/jobs/batch": list, "/v1/finish": list, "/v1/reserve": names} {
		s.tell(ctx, s.Target.HTTP, s.request("POST", path, "127.0.0.1", body), 5*time.Second)
	}
	return nil
}

// maxRefusal bounds the length of the reply to an invalid request.
const maxRefusal = 4 << 10

func httpDeepJSON(ctx context.Context, s *Stranger) error {
	const depth = 100_000
	for _, body := range []string{
		strings.Repeat("[", depth), `{"body":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`,
		strings.Repeat(`{"a":`, depth), `{"topic":"t","body":` + strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) + `}`,
	} {
		if heard := s.tell(ctx, s.Target.HTTP, s.request("POST", "/v1/jobs", "127.0.0.1", []byte(body)), time.Second); len(heard) > maxRefusal {
			return believed("deep JSON was answered with %d bytes", len(heard))
		}
	}
	return nil
}

// idlers is the number of connections that only stay open.
const idlers = 1500

func httpIdle(ctx context.Context, s *Stranger) error {
	s.crowd(ctx, s.Target.HTTP, make([][]byte, idlers), nil, crowdTime)
	return nil
}
