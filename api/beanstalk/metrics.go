package beanstalk

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// failures counts the replies that are failures, for the metrics.
type failures [len(failureWords)]atomic.Uint64

var failureWords = [...]string{
	badFormat, unknownCommand, internalError, outOfMemory, draining, jobTooBig, expectedCRLF, unauthorized,
}

func (f *failures) count(word string) {
	for i, w := range failureWords {
		if w == word {
			f[i].Add(1)
			return
		}
	}
}

// collector reads a server's counts when metrics are scraped.
type collector struct {
	s *Server

	open, waiting, total, commands, failed, ahead *prometheus.Desc
}

func register(r prometheus.Registerer, s *Server) {
	r.MustRegister(&collector{
		s:        s,
		open:     prometheus.NewDesc("tarry_beanstalk_connections", "Connections of beanstalkd clients to this node.", nil, nil),
		waiting:  prometheus.NewDesc("tarry_beanstalk_waiting", "Connections of beanstalkd clients that wait in a reserve.", nil, nil),
		total:    prometheus.NewDesc("tarry_beanstalk_connections_total", "Connections of beanstalkd clients so far.", nil, nil),
		commands: prometheus.NewDesc("tarry_beanstalk_commands_total", "Well-formed commands of beanstalkd clients, by command.", []string{"command"}, nil),
		failed:   prometheus.NewDesc("tarry_beanstalk_failures_total", "Replies to beanstalkd clients by which a command failed, by reply.", []string{"reply"}, nil),
		ahead:    prometheus.NewDesc("tarry_beanstalk_reserved_ahead_total", "Jobs reserved together with the delete of the last one, by what became of them: taken by the next reserve, or returned because there was none in time.", []string{"outcome"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.open, c.waiting, c.total, c.commands, c.failed, c.ahead} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	ch <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(c.s.connections()))
	ch <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(c.s.counts.waiting.Load()))
	counter(c.total, c.s.counts.connections.Load())
	for _, w := range words {
		counter(c.commands, c.s.counts.commands[w.verb].Load(), strings.TrimSpace(w.text))
	}
	for i, word := range failureWords {
		counter(c.failed, c.s.failures[i].Load(), word)
	}
	counter(c.ahead, c.s.counts.ahead[taken].Load(), "taken")
	counter(c.ahead, c.s.counts.ahead[givenBack].Load(), "returned")
}
