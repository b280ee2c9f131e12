package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/job/jobpb"
)

// A stranger with a token that nobody knows makes no node ask its leader where the answer would
// not matter, or must not wait.
func TestWhenTheLeaderIsAskedForAToken(t *testing.T) {
	for _, c := range []struct {
		mode jobpb.AuthMode
		path string
		asks int
	}{
		{off, "/v1/topics", 0},
		{off, "/readyz", 0},
		{off, "/v1/tokens", 1},
		{enforce, "/livez", 0},
		{enforce, "/readyz", 0},
		{enforce, "/v1/topics", 1},
	} {
		state, _ := matrix(t, c.mode)
		asked := 0
		control := access.Open(access.Options{Source: fixed{state}, Leader: func(context.Context) (uint64, error) { asked++; return 0, nil }})
		r := newRig(t, func(o *Options) { o.Access = control })
		<-control.Ready()
		asked = 0
		r.as("nobody", http.MethodGet, c.path, "")
		require.Equal(t, c.asks, asked, "%s in mode %s", c.path, c.mode)
		control.Close()
	}
}
