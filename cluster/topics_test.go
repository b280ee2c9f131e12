package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/rates"
	"tarry/job"
)

// topicMetric returns the values of a metric of a topic on all nodes that have it.
func (c *testCluster) topicMetric(name, topic string) (values []float64) {
	c.t.Helper()
	for _, n := range c.nodes {
		families, err := n.Metrics().Gather()
		require.NoError(c.t, err)
		for _, f := range families {
			for _, m := range f.Metric {
				labels := map[string]string{}
				for _, l := range m.Label {
					labels[l.GetName()] = l.GetValue()
				}
				if f.GetName() != name || labels["topic"] != topic || labels["state"] != "" && labels["state"] != "ready" {
					continue
				}
				require.Equal(c.t, "0", labels["shard"])
				values = append(values, m.GetCounter().GetValue()+m.GetGauge().GetValue()+float64(m.GetHistogram().GetSampleCount()))
			}
		}
	}
	return values
}

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func TestASumOverTheNodesCountsEachEventOnce(t *testing.T) {
	c := newTunedCluster(t, 3, func(_ int, cfg *Config) { cfg.MetricsTopics = 2 })
	addTo := func(round, jobs int) {
		for i := range jobs {
			do(t, c.follower(), add(fmt.Sprint("a", round, "-", i), "mail", 0))
		}
	}
	addTo(1, 10)
	first := c.leader()
	c.transfer(c.nodes[(first+1)%3])
	c.eventually(func() bool { return c.nodes[first].shard.dispatcher() == nil }, "the first leads no longer")
	addTo(2, 5)
	jobs := reserveOne(t, c.nodes[first], 0, "mail")
	require.Len(t, jobs, 1)
	do(t, c.nodes[first], finish(jobs[0]))
	for name, want := range map[string]float64{
		"tarry_topic_adds_total": 15, "tarry_topic_deliveries_total": 1, "tarry_topic_finishes_total": 1, "tarry_topic_lateness_seconds": 1,
	} {
		require.Equal(t, want, sum(c.topicMetric(name, "mail")), name)
	}
	require.Equal(t, []float64{14}, c.topicMetric("tarry_topic_jobs", "mail"), "on the leader only")
	do(t, c.follower(), add("", "work", 0), add("", "more", 0), add("", "less", 0))
	require.EqualValues(t, 2, sum(c.topicMetric("tarry_topic_adds_total", "other")))
	require.EqualValues(t, 2, sum(c.topicMetric("tarry_topic_jobs", "other")))

	all := job.TopicEvents{}
	for _, n := range c.nodes {
		c.eventually(func() bool {
			all = n.shard.TotalRates().Sum(rates.Steps)
			return all[job.TopicAdded] == 18
		}, "rates, which every node counts, have the same")
	}
}
