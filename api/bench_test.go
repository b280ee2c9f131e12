package api

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tarry/api/access"
	"tarry/api/apitest"
	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/auth"
	"tarry/job/jobpb"
)

// idleQueue accepts everything and does nothing, so that only the API is measured.
type idleQueue struct{ Queue }

var added = &jobpb.Result{Seq: 123456789, Id: "$0-123456789", State: jobpb.State_STATE_DELAYED, DueMs: 1_900_000_000_000}

func (idleQueue) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for i := range results {
		results[i] = added
	}
	return results, nil
}

func (idleQueue) Reserve(_ context.Context, r *jobpb.Reserve, _ time.Duration) ([]*jobpb.Reserved, error) {
	jobs := make([]*jobpb.Reserved, r.Max)
	for i := range jobs {
		jobs[i] = &jobpb.Reserved{
			Id: "$0-123456789", Seq: 123456789, Topic: "mail", Body: benchBody, Generation: 1, Attempts: 1,
			DueMs: 1_900_000_000_000, ReservedUntilMs: 1_900_000_060_000, TtrMs: 60_000,
		}
	}
	return jobs, nil
}

var benchBody = bytes.Repeat([]byte("body "), 40)

const benchAdd = `{"topic":"mail","id":"0123456789abcdef","delay":30.5,"ttr":120,"body":"` +
	"body body body body body body body body body body body body body body body body body body body body " +
	"body body body body body body body body body body body body body body body body body body body body " + `"}`

func benchBatch() string {
	return `{"jobs":[` + strings.TrimSuffix(strings.Repeat(benchAdd+",", 100), ",") + `]}`
}

// discard is a connection without a network.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func benchmarkCall(b *testing.B, path, body string) {
	b.Run("open", func(b *testing.B) { benchmarkHandler(b, nil, "", path, body) })
	b.Run("with a token", func(b *testing.B) {
		secret := secretFor(b, "bench")
		s := auth.NewState(1, true, &jobpb.AuthSettings{Mode: jobpb.AuthMode_AUTH_ENFORCE}, nil)
		s = s.WithToken(2, auth.NewToken(&jobpb.Token{Id: "bench", Hash: secret.Hash(), Rules: []*jobpb.Rule{ruleOf(b, "*", "add consume")}}))
		control := access.Open(access.Options{Source: fixed{s}})
		defer control.Close()
		benchmarkHandler(b, control, "Bearer "+secret.Text(), path, body)
	})
}

func benchmarkHandler(b *testing.B, control *access.Control, authorization, path, body string) {
	h := New(Options{Queue: idleQueue{}, Operator: &apitest.Operator{}, Access: control})
	r, err := http.NewRequest(http.MethodPost, "http://localhost"+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.ContentLength, r.RemoteAddr = int64(len(body)), "192.0.2.1:1234"
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	c, err := httpx.LimitConnections(onePipe{}, 1, nil, "").Accept()
	if err != nil {
		b.Fatal(err)
	}
	r = r.WithContext(httpx.ConnContext(b.Context(), c))
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(strings.NewReader(body))
		h.ServeHTTP(w, r)
	}
}

// onePipe accepts connections of which nobody has the other end.
type onePipe struct{ net.Listener }

func (onePipe) Accept() (net.Conn, error) {
	c, _ := net.Pipe()
	return c, nil
}

func BenchmarkAdd(b *testing.B)         { benchmarkCall(b, "/v1/jobs", benchAdd) }
func BenchmarkAddBatch100(b *testing.B) { benchmarkCall(b, "/v1/jobs/batch", benchBatch()) }
func BenchmarkAddLarge(b *testing.B) {
	benchmarkCall(b, "/v1/jobs", `{"topic":"mail","body":"`+strings.Repeat("b", 1<<20)+`"}`)
}
func BenchmarkFinish(b *testing.B) {
	benchmarkCall(b, "/v1/jobs/0123456789abcdef/finish", `{"token":"0-123456789-1"}`)
}
func BenchmarkReserve100(b *testing.B) {
	benchmarkCall(b, "/v1/reserve", `{"topics":["mail"],"max":100}`)
}

// BenchmarkDecode compares two JSON packages that decode an add. The standard one accepts
// duplicate fields and does not report where an error is.
func BenchmarkDecode(b *testing.B) {
	for name, text := range map[string]string{"one": benchAdd, "batch of 100": benchBatch()} {
		b.Run("strict/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var one wire.AddRequest
				var many wire.Batch[wire.AddRequest]
				var v any = &one
				if name != "one" {
					v = &many
				}
				if err := wire.Decode([]byte(text), v); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encoding-json/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var one stdAdd
				var many struct{ Jobs []stdAdd }
				var v any = &one
				if name != "one" {
					v = &many
				}
				dec := stdjson.NewDecoder(strings.NewReader(text))
				dec.DisallowUnknownFields()
				if err := dec.Decode(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type stdAdd struct {
	Topic       string             `json:"topic"`
	ID          *string            `json:"id"`
	Delay       *float64           `json:"delay"`
	DueAt       *string            `json:"due_at"`
	TTR         *float64           `json:"ttr"`
	Priority    *int64             `json:"priority"`
	MaxAttempts *int64             `json:"max_attempts"`
	Body        stdjson.RawMessage `json:"body"`
	BodyBase64  *string            `json:"body_base64"`
}
