package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by path and status.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tarry_http_requests_total",
			Help: "HTTP requests answered, by path and status.",
		}, []string{"path", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tarry_http_request_seconds",
			Help:    "Time from the head of a request to the end of its answer, by path. Reserves include their wait.",
			Buckets: []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 30, 300},
		}, []string{"path"}),
	}
	if registry != nil {
		registry.MustRegister(m.requests, m.seconds)
	}
	return m
}

// pathMetrics counts the requests of one path.
type pathMetrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Observer
}

func (m *metrics) path(path string) pathMetrics {
	return pathMetrics{
		requests: m.requests.MustCurryWith(prometheus.Labels{"path": path}),
		seconds:  m.seconds.WithLabelValues(path),
	}
}

func (p pathMetrics) observe(status int, took time.Duration) {
	p.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	p.seconds.Observe(took.Seconds())
}
