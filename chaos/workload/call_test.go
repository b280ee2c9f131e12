package workload

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/chaos/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func callerOf(t *testing.T, addrs ...string) *caller {
	var nodes []Node
	for _, addr := range addrs {
		nodes = append(nodes, Node{HTTP: addr})
	}
	c := newCaller(0, Config{Nodes: func() []Node { return nodes }, Recorder: history.NewRecorder()})
	t.Cleanup(c.close)
	return c
}

// An update to an instant computes it before the call is recorded, and a busy machine may
// pause between the two.
func TestACallBeginsWhenItsCallerSaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"success":true}`) }))
	defer server.Close()
	c := callerOf(t, server.Listener.Addr().String())
	c.recorded(t.Context(), http.MethodPatch, "/", nil, history.Op{Kind: history.Update, Invoke: 7})
	c.recorded(t.Context(), http.MethodPatch, "/", nil, history.Op{Kind: history.Update})
	ops := c.rec.Ops()
	require.Equal(t, int64(7), ops[0].Invoke)
	require.GreaterOrEqual(t, ops[1].Invoke, ops[0].Complete)
}

func TestOutcomeOfAReply(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	answers := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    history.Outcome
		moves   bool
	}{
		{"created", answers(201, `{"success":true,"seq":7}`), history.OK, false},
		{"refused", answers(409, `{"success":false,"code":"stale_token"}`), history.Fail, false},
		{"overloaded", answers(429, `{"success":false,"code":"overloaded"}`), history.Fail, true},
		{"not applied", answers(503, `{"success":false,"code":"not_applied"}`), history.Fail, true},
		{"disk low", answers(507, `{"success":false,"code":"disk_low"}`), history.Fail, true},
		{"unknown", answers(504, `{"success":false,"code":"unknown"}`), history.Unknown, true},
		{"defect", answers(500, `{"success":false,"code":"internal"}`), history.Unknown, true},
		{"answer cut short", answers(200, `{"success":tr`), history.Unknown, true},
		{"connection lost", hangUp, history.Unknown, true},
		{"no answer in time", silent, history.Unknown, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.handler)
			defer s.Close()
			addr := strings.TrimPrefix(s.URL, "http://")
			caller := callerOf(t, addr, "other")
			_, outcome := caller.call(context.Background(), "POST", "/", nil, 200*time.Millisecond)
			require.Equal(t, c.want, outcome)
			require.Equal(t, c.moves, caller.node() == "other")
		})
	}
}

func TestRefusedConnectionDidNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, outcome := callerOf(t, l.Addr().String()).call(context.Background(), "POST", "/", nil, time.Second)
	require.Equal(t, history.Fail, outcome)
}

func TestItemsOfABatchHaveTheirOwnOutcome(t *testing.T) {
	for _, c := range []struct {
		whole history.Outcome
		item  answer
		want  history.Outcome
	}{
		{history.OK, answer{Success: true}, history.OK},
		{history.OK, answer{Code: "id_conflict"}, history.Fail},
		{history.OK, answer{Code: "unknown"}, history.Unknown},
		{history.Unknown, answer{}, history.Unknown},
		{history.Fail, answer{}, history.Fail},
	} {
		require.Equal(t, c.want, itemOutcome(c.whole, c.item), "%+v", c)
	}
}

func TestGenerationOrdersTokens(t *testing.T) {
	require.Equal(t, uint64(12), generation("0-7-12"))
	require.Panics(t, func() { generation("0-7-x") })
}
