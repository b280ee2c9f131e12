package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"tarry/job/jobpb"
)

// namespaceCollector reads what the namespaces hold when /metrics is requested. They are few, so
// each has series of its own.
type namespaceCollector struct {
	s                           *Shard
	jobs, bytes, topics, quotas *prometheus.Desc
}

func newNamespaceCollector(s *Shard) *namespaceCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace"}, labels...), nil)
	}
	return &namespaceCollector{
		s:      s,
		jobs:   desc("tarry_namespace_jobs", "Jobs of a namespace in all states, in this node's state."),
		bytes:  desc("tarry_namespace_bytes", "Bytes of the bodies of a namespace's jobs, in this node's state."),
		topics: desc("tarry_namespace_topics", "Topics of a namespace, in this node's state."),
		quotas: desc("tarry_namespace_quota", "What a namespace may hold of jobs, bytes and topics, and its rate of adds a second through each node; absent without a quota.", "quota"),
	}
}

// Describe implements prometheus.Collector.
func (c *namespaceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{c.jobs, c.bytes, c.topics, c.quotas} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *namespaceCollector) Collect(ch chan<- prometheus.Metric) {
	if c.s.machine.Namespaces() == nil || !c.s.isShown() {
		return
	}
	v := c.s.machine.View()
	defer v.Close()
	list, err := v.Namespaces()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.jobs, err)
		return
	}
	for _, n := range list {
		c.collect(ch, n)
	}
}

func (c *namespaceCollector) collect(ch chan<- prometheus.Metric, n *jobpb.NamespaceUse) {
	name := n.Namespace.GetName()
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{name}, labels...)...)
	}
	set(c.jobs, float64(n.Jobs))
	set(c.bytes, float64(n.Bytes))
	set(c.topics, float64(n.Topics))
	q := n.Namespace.GetQuotas()
	if q == nil {
		return
	}
	for name, limit := range map[string]*uint64{"jobs": q.Jobs, "bytes": q.Bytes, "topics": q.Topics} {
		if limit != nil {
			set(c.quotas, float64(*limit), name)
		}
	}
	if q.RateMilli != nil {
		set(c.quotas, float64(*q.RateMilli)/1000, "rate")
	}
}
