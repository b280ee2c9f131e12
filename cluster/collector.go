package cluster

import (
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/job/jobpb"
)

// gauge is one of the gauges without labels that a collector reads on request.
type gauge struct{ name, help string }

// gauges has the descriptions of a collector's gauges, by name.
type gauges map[string]*prometheus.Desc

func newGauges(list []gauge) gauges {
	g := gauges{}
	for _, one := range list {
		g[one.name] = prometheus.NewDesc(one.name, one.help, nil, nil)
	}
	return g
}

func (g gauges) describe(ch chan<- *prometheus.Desc) {
	for _, d := range g {
		ch <- d
	}
}

// setter returns a function that sends the value of a gauge to ch.
func (g gauges) setter(ch chan<- prometheus.Metric) func(name string, v float64) {
	return func(name string, v float64) {
		ch <- prometheus.MustNewConstMetric(g[name], prometheus.GaugeValue, v)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// shardCollector reads the gauges of a shard when /metrics is requested.
type shardCollector struct {
	s         *Shard
	gauges    gauges
	jobs      *prometheus.Desc
	uses      *prometheus.Desc
	transfers *prometheus.Desc // a counter
}

var shardGauges = []gauge{
	{"tarry_state_migrating", "1 while records in the format of an earlier cluster version remain."},
	{"tarry_topics", "Topics that have jobs, or had some within the last hour, in this node's state."},
	{"tarry_reserves_waiting", "Reserves that wait on this leader; 0 on other nodes."},
	{"tarry_fsm_applied_index", "Index of the last log entry that the state machine applied."},
	{"tarry_fsm_durable_index", "Index of the log entry up to which the state is durable without the log."},
	{"tarry_fsm_clock_skew_seconds", "How far the queue's clock is ahead of this node's: on the leader the running clock; on other nodes the time of the last entry, and 0 if that is not ahead."},
	{"tarry_store_bytes", "Bytes of the state machine's store on disk."},
	{"tarry_store_memtable_bytes", "Bytes of the state machine's store in memory tables."},
	{"tarry_store_compaction_debt_bytes", "Estimate of the bytes that wait for compaction."},
	{"tarry_log_write_seconds", "Mean duration of the last writes to this node's Raft log, each with its sync."},
	{"tarry_adds_refused", "1 while this leader refuses adds because disks are low; 0 on other nodes."},
	{"tarry_raft_is_leader", "1 if this node is the leader."},
	{"tarry_raft_has_leader", "1 if this node knows a leader."},
	{"tarry_raft_term", "Raft term."},
	{"tarry_raft_last_index", "Index of the last entry in this node's log."},
	{"tarry_raft_commit_index", "Index up to which this node knows entries to be committed."},
	{"tarry_raft_last_contact_seconds", "Time since this follower last received a message of its leader; 0 on the leader."},
}

func newShardCollector(s *Shard) *shardCollector {
	return &shardCollector{
		s: s, gauges: newGauges(shardGauges),
		jobs:      prometheus.NewDesc("tarry_jobs", "Jobs by state, in this node's state.", []string{"state"}, nil),
		uses:      prometheus.NewDesc("tarry_limit_used_ratio", "How much of a limit of the whole cluster is in use, in this node's state; at 1 new ones are refused.", []string{"limit"}, nil),
		transfers: prometheus.NewDesc("tarry_leadership_transfers_total", "Times this node, as the leader, tried to transfer leadership to a voter with a better disk or a right clock.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *shardCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.jobs
	ch <- c.uses
	ch <- c.transfers
	c.gauges.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *shardCollector) Collect(ch chan<- prometheus.Metric) {
	set := c.gauges.setter(ch)
	s := c.s
	if s.isShown() {
		c.collectJobs(ch, set)
	}
	applied := s.machine.Applied()
	set("tarry_fsm_applied_index", float64(applied.Index))
	set("tarry_fsm_durable_index", float64(s.machine.DurableIndex()))
	set("tarry_state_migrating", flag(s.machine.Migrating()))
	if applied.ClockMS > 0 {
		set("tarry_fsm_clock_skew_seconds", s.clockSkew().Seconds())
	}
	ch <- prometheus.MustNewConstMetric(c.transfers, prometheus.CounterValue, float64(s.cfg.Host.TransferAttempts()))
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
	set("tarry_log_write_seconds", s.stores.WriteTime().Seconds())
	set("tarry_adds_refused", flag(s.cfg.Host.AddsRefused() != ""))
	c.collectRaft(set)
}

func (c *shardCollector) collectRaft(set func(string, float64)) {
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
func (c *shardCollector) collectJobs(ch chan<- prometheus.Metric, set func(string, float64)) {
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
	for _, use := range c.s.machine.LimitUses() {
		ch <- prometheus.MustNewConstMetric(c.uses, prometheus.GaugeValue, use.Share(), use.What)
	}
}

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
