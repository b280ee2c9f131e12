package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/report"
	"tarry/job"
)

// nodeCollector reads the gauges of the process and of the cluster, which belong to no
// shard, when /metrics is requested.
type nodeCollector struct {
	n      *Node
	gauges gauges
	clock  *prometheus.Desc
}

var nodeGauges = []gauge{
	{"tarry_cluster_version", "Cluster version of this node's state."},
	{"tarry_cluster_version_max", "Highest cluster version that this node's release supports."},
	{"tarry_cluster_healthy", "1 if the leader finds the cluster healthy; only the leader has this metric."},
	{"tarry_cluster_failure_tolerance", "How many more voters may fail before writes stop; only the leader has this metric."},
	{"tarry_cluster_plain_connections", "Open connections to and from other nodes without TLS."},
	{"tarry_cluster_tls_connections", "Open connections to and from other nodes with TLS."},
	{"tarry_gossip_keys", "Keys that this node has for gossip; 0: gossip is in plain text."},
	{"tarry_gossip_keyring_revision", "Revision of this node's gossip keys; it differs between nodes while one lacks a change."},
	{"tarry_standby_following", "1 on the nodes of a standby until it is promoted."},
	{"tarry_standby_connected", "1 while a node of the primary sends its log to this standby; only the leader has this metric."},
	{"tarry_standby_lag_entries", "Entries of the primary's log that it had at the last contact and that are not here; only the leader has this metric."},
	{"tarry_standby_lag_seconds", "For how long entries of the primary may be missing here; 0 unless this is a standby; only the leader has this metric."},
	{"tarry_disk_free_bytes", "Free bytes of the disk of the data directory."},
	{"tarry_disk_total_bytes", "Bytes of the disk of the data directory."},
	{"tarry_disk_low_water_bytes", "Free bytes below which the disk counts as low."},
	{"tarry_disk_low", "1 while this node's disk is low."},
}

func newNodeCollector(n *Node) *nodeCollector {
	return &nodeCollector{
		n: n, gauges: newGauges(nodeGauges),
		clock: prometheus.NewDesc("tarry_clock_offset_seconds", "How far the clock of the node id was ahead of the majority's when this leader last compared them; only the leader has this metric.", []string{"id"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.clock
	c.gauges.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	n, set := c.n, c.gauges.setter(ch)
	set("tarry_cluster_version", float64(n.shard.machine.Version()))
	set("tarry_cluster_version_max", job.MaxVersion)
	if h := n.members.LeaderHealth(); h != nil {
		set("tarry_cluster_healthy", flag(h.Healthy))
		set("tarry_cluster_failure_tolerance", float64(h.FailureTolerance))
	}
	c.collectStandby(set)
	plain, secured := n.mux.Connections()
	set("tarry_cluster_plain_connections", float64(plain))
	set("tarry_cluster_tls_connections", float64(secured))
	var keys gossipkeys.Keys
	if n.cfg.GossipKeys != nil {
		keys = n.cfg.GossipKeys.Keys()
	}
	set("tarry_gossip_keys", float64(len(keys.List)))
	set("tarry_gossip_keyring_revision", float64(keys.Revision))
	d := n.disk.State()
	set("tarry_disk_free_bytes", float64(d.Free))
	set("tarry_disk_total_bytes", float64(d.Total))
	set("tarry_disk_low_water_bytes", float64(d.Mark))
	set("tarry_disk_low", flag(d.Low))
	for id, by := range n.members.ClockGuard().Offsets() {
		ch <- prometheus.MustNewConstMetric(c.clock, prometheus.GaugeValue, by.Seconds(), id)
	}
}

func (c *nodeCollector) collectStandby(set func(string, float64)) {
	follows := c.n.shard.machine.Follows()
	set("tarry_standby_following", flag(follows))
	if c.n.shard.leadership.Load() == nil {
		return
	}
	var s *report.Standby
	if follows {
		s = c.n.follower.Status()
	}
	set("tarry_standby_connected", flag(s.GetConnected()))
	set("tarry_standby_lag_entries", float64(s.LagEntries()))
	set("tarry_standby_lag_seconds", max(0, s.LagSeconds()))
}
