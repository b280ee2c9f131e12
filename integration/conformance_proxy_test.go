package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"tarry/bench/localcluster"
)

// A node begins a stream as soon as it has the request.
func TestTheProxyOfACaseCutsNoStream(t *testing.T) {
	t.Parallel()
	const clients, streams = 8, 200
	var goOn [clients]chan struct{}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		var i int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &i)
		select {
		case <-goOn[i]:
			_, _ = io.WriteString(w, "last")
		case <-r.Context().Done():
		}
	}))
	defer node.Close()
	f := new(front)
	d := f.newDoor(&localcluster.Node{HTTP: node.Listener.Addr().String()}, nil)
	d.open(t)
	defer d.close()

	var all sync.WaitGroup
	defer all.Wait()
	for i := range clients {
		goOn[i] = make(chan struct{}, 1)
		all.Go(func() {
			for range streams {
				resp, err := http.Post(fmt.Sprintf("http://%s/%d", d.addr, i), "application/json", strings.NewReader("{}"))
				if !assert.NoError(t, err) {
					return
				}
				first := make([]byte, len("first "))
				_, err = io.ReadFull(resp.Body, first)
				assert.NoError(t, err)
				goOn[i] <- struct{}{}
				rest, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if !assert.NoError(t, err) || !assert.Equal(t, "last", string(rest)) {
					return
				}
			}
		})
	}
}
