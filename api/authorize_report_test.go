package api

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/access"
)

// deniedIn adds up a metric of denials.
func deniedIn(t *testing.T, registry *prometheus.Registry) (n float64) {
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "tarry_auth_denied_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// Several looks are taken at a call, and each of its denials is one.
func TestADenialIsReportedOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newClosedRig(t)
	control := access.Open(access.Options{Source: r.queue, Registry: registry})
	defer control.Close()
	r.rig = &rig{t: t, handler: New(Options{Queue: r.queue, Operator: r.operator, Access: control, Hosts: []string{"example.com"}})}
	r.mode("report")
	for _, c := range []struct {
		method, path, body string
		denials            float64
	}{
		{"POST", "/v1/jobs", `{"topic":"mail","id":"one","body":1}`, 1},
		{"POST", "/v1/jobs/batch", `{"jobs":[{"topic":"mail","body":1},{"topic":"sms","body":1}]}`, 2},
		{"GET", "/v1/jobs/one", "", 1},
		{"GET", "/v1/topics", "", 1},
		{"GET", "/v1/topics/mail", "", 1},
		{"POST", "/v1/reserve", `{"topics":["mail"]}`, 1},
		{"POST", "/v1/topics/mail/pause", `{"for":1}`, 1},
		{"DELETE", "/v1/jobs/one", "", 1},
		{"GET", "/v1/cluster/health", "", 1},
	} {
		before := deniedIn(t, registry)
		w := r.with("", c.method, c.path, c.body)
		require.Less(t, w.Code, 300, "%s: %s", c.path, w.Body)
		require.EqualValues(t, c.denials, deniedIn(t, registry)-before, "%s %s", c.method, c.path)
	}
}

// What was begun with a text of a token ends with that text.
func TestARotationEndsWhatWaits(t *testing.T) {
	for _, overlap := range []string{"0", "0.05"} {
		r := newClosedRig(t)
		worker := r.make("worker", `{"topics":["mail"],"verbs":["consume"]}`)
		r.mode("enforce")
		ended := make(chan int, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			ended <- r.with(worker, "POST", "/v1/reserve", `{"topics":["mail"],"wait":60}`).Code
		}()
		require.Eventually(t, func() bool { return r.queue.Waiting() == 1 }, time.Minute, time.Millisecond)
		w := r.with(r.root, "POST", "/v1/tokens/worker/rotate", `{"overlap":`+overlap+`}`)
		require.Less(t, w.Code, 300, w.Body.String())
		select {
		case code := <-ended:
			require.Equal(t, 403, code)
		case <-ctx.Done():
			t.Fatal("it waits on")
		}
	}
}
