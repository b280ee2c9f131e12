package api

import (
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/httpx"
	"tarry/job"
)

// Connections that announce requests of 32 MiB and send only a few bytes do not block other
// requests, even from the same address.
func TestAnAnnouncedRequestUsesNoMemory(t *testing.T) {
	r := newRig(t)
	var work sync.WaitGroup
	defer work.Wait()
	var ends []io.Closer
	for range 51 {
		body, client := io.Pipe()
		ends = append(ends, client)
		q := httptest.NewRequest("POST", "/v1/jobs/batch", body)
		q.ContentLength = maxBatchRequest
		work.Go(func() { r.handler.ServeHTTP(httptest.NewRecorder(), q) })
		_, err := io.WriteString(client, `{"jobs":[`) // returns once the server has read it
		require.NoError(t, err)
	}
	r.ok("/v1/jobs", `{"topic":"t","body":""}`)
	r.ok("/v1/reserve", `{"topics":["t"]}`)
	for _, c := range ends {
		require.NoError(t, c.Close())
	}
}

// The memory for a request grows as it arrives, to at most four times the received bytes.
func TestMemoryGrowsWithTheReceivedBytes(t *testing.T) {
	for _, announced := range []int64{-1, 0, 1, 100, 4096, 1 << 20, 32 << 20} {
		size := max(announced, 1<<20)
		steps := 0
		for arrived := int64(0); arrived < size; steps++ {
			room := httpx.NextRoom(arrived, announced)
			require.Positive(t, room)
			require.LessOrEqual(t, arrived+room, max(4*arrived, arrived+httpx.FirstRoom))
			if announced >= arrived {
				require.LessOrEqual(t, arrived+room, announced+1)
			}
			arrived += room
		}
		require.Less(t, steps, 16, "each byte is copied few times")
	}
}

func TestReadTimeGrowsWithTheRequest(t *testing.T) {
	require.Equal(t, 5*time.Second, httpx.ReadTime(0))
	require.Equal(t, 6*time.Second, httpx.ReadTime(16<<10))
}

// An address that uses up its share gets refusals; other addresses do not.
func TestAnotherAddressIsServed(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBufferedBytes = 20_000 })
	from := func(address string) *httptest.ResponseRecorder {
		q := httptest.NewRequest("POST", "/v1/jobs", strings.NewReader(`{"topic":"t","body":""}`))
		q.RemoteAddr = address + ":1234"
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		return w
	}
	var work sync.WaitGroup
	body, client := io.Pipe()
	q := httptest.NewRequest("POST", "/v1/jobs/batch", body)
	q.RemoteAddr = "192.0.2.9:1"
	q.ContentLength = 9_990
	work.Go(func() { r.handler.ServeHTTP(httptest.NewRecorder(), q) })
	_, err := io.WriteString(client, strings.Repeat(" ", 9_900))
	require.NoError(t, err)
	refused(t, from("192.0.2.9"), 429, job.CodeOverloaded, "one address")
	require.Equal(t, 201, from("192.0.2.8").Code)
	require.NoError(t, client.Close())
	work.Wait()
	require.Equal(t, 201, from("192.0.2.9").Code, "what was held is given back")
}
