package main

import (
	"flag"
	"net/url"
	"runtime"
	"strconv"
	"time"

	"tarry/cluster"
	"tarry/cluster/backup"
	"tarry/job"
)

// shownSettings are the flags of tarry server whose values anybody may see who may operate the
// cluster. The values of all others are hidden, so a flag for a secret is safe from its first day.
var shownSettings = setOf(
	"node-id", "data-dir", "config", "log-store",
	"http-addr", "beanstalk-addr", "beanstalk-listen", "cluster-addr", "gossip-addr", "advertise-host", "http-hosts", "insecure", "join", "bootstrap-expect",
	"cluster-tls-mode", "cluster-tls-cert", "cluster-tls-key", "cluster-tls-ca",
	"http-tls-mode", "http-tls-cert", "http-tls-key", "http-client-ca",
	"beanstalk-tls-mode", "beanstalk-tls-cert", "beanstalk-tls-key", "beanstalk-client-ca",
	"beanstalk-max-job-size", "max-body-bytes", "max-connections", "cache-bytes", "metrics-topics",
	"disk-low-water", "max-clock-offset", "hold-version",
	"log-level", "log-format", "ui", "pprof-addr", "otlp-endpoint", "trace-sample",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// settingsOf lists the settings of a node without secrets. given has the flags that were set.
func (c *serverConfig) settingsOf(fs *flag.FlagSet, given map[string]bool) (list []job.NodeSetting) {
	computed := map[string]string{ // of flags that keep no text
		"bootstrap-expect": strconv.Itoa(c.expect()),
		"advertise-host":   c.AdvertiseHost,
		"log-store":        string(c.LogStore),
		"otlp-endpoint":    withoutSecrets(c.OTLPEndpoint),
	}
	if c.TraceSample != nil {
		computed["trace-sample"] = strconv.FormatFloat(*c.TraceSample, 'g', -1, 64)
	}
	fs.VisitAll(func(f *flag.Flag) { // in the order of names
		s := job.NodeSetting{Name: f.Name, Value: f.Value.String()}
		if text, ok := computed[f.Name]; ok {
			s.Value = text
		}
		if !shownSettings[f.Name] {
			s.Hidden = given[f.Name] || s.Value != f.DefValue
			s.Value = ""
		}
		list = append(list, s)
	})
	return list
}

// withoutSecrets removes from a URL what may be one.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// aboutNode describes this process.
func aboutNode(cfg *serverConfig) job.About {
	return job.About{
		ID: cfg.NodeID, Settings: cfg.settings, Release: version, Revision: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Started: time.Now(), StoreFormat: cluster.StoreFormat, WireVersion: cluster.WireVersion, BackupFormat: backup.FormatVersion,
		Runs: job.ReleaseVersions(),
	}
}
