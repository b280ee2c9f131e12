package cluster

import (
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/job"
)

// collector reads a shard's gauges when /metrics is requested.
type collector struct {
	s                *Shard
	gauge            map[string]*prometheus.Desc
	jobs             *prometheus.Desc
	clock            *prometheus.Desc
	transferAttempts *prometheus.Desc // a counter, unlike the others
}

// gauges has the names and descriptions of what collect reports, except jobs.
var gauges = []struct{ name, help string }{
	{"tarry_cluster_version", "Cluster version that this node's state has come to."},
	{"tarry_cluster_version_max", "Highest cluster version that this node's release runs."},
	{"tarry_state_migrating", "1 while records of the cluster version before are still to be written anew."},
	{"tarry_topics", "Topics that have jobs, or had some within the last hour."},
	{"tarry_reserves_waiting", "Reserves that wait on this leader."},
	{"tarry_fsm_applied_index", "Index of the last log entry that the state machine applied."},
	{"tarry_fsm_clock_skew_seconds", "How far the queue's clock, as it goes on, is ahead of this node's; on other nodes than the leader the last entry's time, and 0 while it is not ahead."},
	{"tarry_store_bytes", "Bytes that the state machine's store has on disk."},
	{"tarry_store_memtable_bytes", "Bytes of the state machine's store that are in memory tables."},
	{"tarry_store_compaction_debt_bytes", "Estimate of the bytes that wait for compaction."},
	{"tarry_log_write_seconds", "Mean time of the last writes to this node's Raft log, each with its sync."},
	{"tarry_disk_free_bytes", "Bytes that are free on the disk of the data directory."},
	{"tarry_disk_total_bytes", "Bytes of the disk of the data directory."},
	{"tarry_disk_low_water_bytes", "Free bytes below which the disk counts as low."},
	{"tarry_disk_low", "1 while this node's disk is low."},
	{"tarry_adds_refused", "1 while this leader refuses adds because disks are low."},
	{"tarry_raft_is_leader", "1 when this node leads."},
	{"tarry_raft_has_leader", "1 when this node knows a leader."},
	{"tarry_raft_term", "Raft term."},
	{"tarry_raft_last_index", "Index of the last entry in this node's log."},
	{"tarry_raft_commit_index", "Index up to which this node knows entries to be committed."},
	{"tarry_raft_last_contact_seconds", "Time since this follower last received a message of its leader; 0 on the leader."},
}

func registerCollector(r prometheus.Registerer, s *Shard) {
	c := &collector{s: s, gauge: map[string]*prometheus.Desc{},
		jobs:             prometheus.NewDesc("tarry_jobs", "Jobs by state, in this node's state.", []string{"state"}, nil),
		clock:            prometheus.NewDesc("tarry_clock_offset_seconds", "How far a node's clock was ahead of the majority's when this leader last compared them.", []string{"id"}, nil),
		transferAttempts: prometheus.NewDesc("tarry_leader_gave_way", "Times this node, as the leader, tried to transfer leadership to a voter with a better disk or a right clock.", nil, nil)}
	for _, g := range gauges {
		c.gauge[g.name] = prometheus.NewDesc(g.name, g.help, nil, nil)
	}
	r.MustRegister(c)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.jobs
	ch <- c.clock
	ch <- c.transferAttempts
	for _, d := range c.gauge {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	set := func(name string, v float64) {
		ch <- prometheus.MustNewConstMetric(c.gauge[name], prometheus.GaugeValue, v)
	}
	c.collectJobs(ch, set)
	s := c.s
	applied := s.machine.Applied()
	set("tarry_fsm_applied_index", float64(applied.Index))
	set("tarry_cluster_version", float64(s.machine.Version()))
	set("tarry_cluster_version_max", job.MaxVersion)
	set("tarry_state_migrating", flag(s.machine.Migrating()))
	if applied.ClockMS > 0 {
		set("tarry_fsm_clock_skew_seconds", s.clockSkew().Seconds())
	}
	for id, by := range s.cfg.ClockOffsets() {
		ch <- prometheus.MustNewConstMetric(c.clock, prometheus.GaugeValue, by.Seconds(), id)
	}
	ch <- prometheus.MustNewConstMetric(c.transferAttempts, prometheus.CounterValue, float64(s.cfg.TransferAttempts()))
	waiting := 0
	if d := s.dispatcher(); d != nil {
		waiting = d.Waiting()
	}
	set("tarry_reserves_waiting", float64(waiting))
	if m := s.machine.Metrics(); m != nil {
		set("tarry_store_bytes", float64(m.DiskSpaceUsage()))
		set("tarry_store_memtable_bytes", float64(m.MemTable.Size))
		set("tarry_store_compaction_debt_bytes", float64(m.Compact.EstimatedDebt))
	}
	c.collectDisk(set)
	c.collectRaft(set)
}

func (c *collector) collectDisk(set func(string, float64)) {
	d := c.s.cfg.Disk()
	set("tarry_log_write_seconds", c.s.stores.WriteTime().Seconds())
	set("tarry_disk_free_bytes", float64(d.Free))
	set("tarry_disk_total_bytes", float64(d.Total))
	set("tarry_disk_low_water_bytes", float64(d.Mark))
	set("tarry_disk_low", flag(d.Low))
	set("tarry_adds_refused", flag(c.s.cfg.AddsRefused() != ""))
}

func (c *collector) collectRaft(set func(string, float64)) {
	r := c.s.raft
	leads := r.State() == raft.Leader
	set("tarry_raft_is_leader", flag(leads))
	l, _ := c.s.leaders.Get()
	set("tarry_raft_has_leader", flag(l.ID != ""))
	set("tarry_raft_term", float64(r.CurrentTerm()))
	set("tarry_raft_last_index", float64(r.LastIndex()))
	set("tarry_raft_commit_index", float64(r.CommitIndex()))
	contact := 0.0
	if last := r.LastContact(); !leads && !last.IsZero() {
		contact = time.Since(last).Seconds()
	}
	set("tarry_raft_last_contact_seconds", contact)
}

// collectJobs reads the counts of all topics together.
func (c *collector) collectJobs(ch chan<- prometheus.Metric, set func(string, float64)) {
	v := c.s.machine.View()
	defer v.Close()
	t, err := v.Totals()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.jobs, err)
		return
	}
	for state, n := range map[string]uint64{"delayed": t.Delayed, "ready": t.Ready, "reserved": t.Reserved, "dead": t.Dead, "retained": t.Retained} {
		ch <- prometheus.MustNewConstMetric(c.jobs, prometheus.GaugeValue, float64(n), state)
	}
	set("tarry_topics", float64(t.Topics))
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
