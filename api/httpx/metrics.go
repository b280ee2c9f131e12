package httpx

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts requests by method, path and status.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tarry_http_requests_total",
			Help: "HTTP requests by method, path template and status of the response.",
		}, []string{"method", "path", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tarry_http_request_seconds",
			Help: "Time from the head of a request to the end of its response, by method and path template. Reserves and streams include their wait.",
			// Few, because each is a series for every method and path in use.
			Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60},
		}, []string{"method", "path"}),
	}
	if registry != nil {
		registry.MustRegister(m.requests, m.seconds)
	}
	return m
}

// countedMethods are the values of the label method. A client may send any word as a
// method; all others are otherMethod.
var countedMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, otherMethod,
}

const otherMethod = "other"

// pathMetrics counts the requests of one path, by method.
type pathMetrics map[string]*callMetrics

// callMetrics counts the requests of one path and method. It has no series before the
// first one.
type callMetrics struct {
	requests *prometheus.CounterVec // by status
	seconds  func() prometheus.Observer
}

// Path returns the metrics of a path template.
func (m *Metrics) Path(path string) pathMetrics {
	p := pathMetrics{}
	for _, method := range countedMethods {
		p[method] = &callMetrics{
			requests: m.requests.MustCurryWith(prometheus.Labels{"method": method, "path": path}),
			seconds:  sync.OnceValue(func() prometheus.Observer { return m.seconds.WithLabelValues(method, path) }),
		}
	}
	return p
}

func (p pathMetrics) Observe(method string, status int, took time.Duration) {
	c := p[method]
	if c == nil {
		c = p[otherMethod]
	}
	c.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	c.seconds().Observe(took.Seconds())
}
