package backupschedule

import "github.com/prometheus/client_golang/prometheus"

var (
	lastSuccess = describe("tarry_backup_last_success_timestamp_seconds", "When the newest scheduled backup that this node knows was made, in Unix time; 0: it knows none.")
	lastBytes   = describe("tarry_backup_last_bytes", "Size of the newest scheduled backup that this node knows.")
	duration    = describe("tarry_backup_last_duration_seconds", "How long this node took for its last scheduled backup.")
	overdue     = describe("tarry_backup_overdue_seconds", "For how long a scheduled backup has been due on this leader; 0 if none is, and on other nodes.")
	failing     = describe("tarry_backup_failing", "1 while this node cannot make scheduled backups.")
	made        = describe("tarry_backups_total", "Scheduled backups that this node completed.")
	failures    = describe("tarry_backup_failures_total", "Attempts of this node to make a scheduled backup that failed.")
)

func describe(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// Collector returns the metrics of s. Without a schedule s is nil, and all of them are 0.
func Collector(s *Scheduler) prometheus.Collector { return collector{s} }

type collector struct{ s *Scheduler }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastSuccess, lastBytes, duration, overdue, failing, made, failures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	var st status
	late := 0.0
	if c.s != nil {
		c.s.change(func(now *status) { st = *now })
		if !st.dueSince.IsZero() {
			late = max(0, c.s.cfg.Now().Sub(st.dueSince).Seconds())
		}
	}
	set := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	at, broken := 0.0, 0.0
	if !st.last.Taken.IsZero() {
		at = float64(st.last.Taken.UnixMilli()) / 1000
	}
	if st.trouble != "" {
		broken = 1
	}
	set(lastSuccess, prometheus.GaugeValue, at)
	set(lastBytes, prometheus.GaugeValue, float64(st.last.Bytes))
	set(duration, prometheus.GaugeValue, st.took.Seconds())
	set(overdue, prometheus.GaugeValue, late)
	set(failing, prometheus.GaugeValue, broken)
	set(made, prometheus.CounterValue, float64(st.completed))
	set(failures, prometheus.CounterValue, float64(st.failed))
}
