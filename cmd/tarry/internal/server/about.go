package server

import (
	"cmp"
	"flag"
	"net/url"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster"
	"tarry/cluster/backup"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// settingsOf lists the settings of a node without secrets. given has the flags that were set.
func (c *Config) settingsOf(fs *flag.FlagSet, given map[string]bool) (list []job.NodeSetting) {
	rows := c.settingsByName()
	fs.VisitAll(func(f *flag.Flag) { // in the order of names
		if _, finished := rows[f.Name]; !finished {
			return
		}
		s := job.NodeSetting{Name: f.Name, Value: cmp.Or(rows[f.Name].show, f.Value.String())}
		if !rows[f.Name].shown {
			s.Hidden = given[f.Name] || s.Value != f.DefValue
			s.Value = ""
		}
		list = append(list, s)
	})
	return list
}

// sampleText is the value of --trace-sample; empty: there is none.
func sampleText(share *float64) string {
	if share == nil {
		return ""
	}
	return strconv.FormatFloat(*share, 'g', -1, 64)
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

// AboutNode describes this process.
func AboutNode(cfg *Config) job.About {
	return job.About{
		ID: cfg.NodeID, Settings: cfg.settings, Release: cli.Version, Revision: cli.Revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Started: time.Now(), StoreFormat: cluster.StoreFormat, WireVersion: cluster.WireVersion, BackupFormat: backup.FormatVersion,
		Runs: job.ReleaseVersions(),
	}
}

// newBuildInfo returns a metric that is always 1; its labels name the build.
func newBuildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tarry_build_info", Help: "Always 1; the labels name the release, its commit and the version of Go that built it.",
		ConstLabels: prometheus.Labels{"version": cli.Version, "revision": cli.Revision(), "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}
