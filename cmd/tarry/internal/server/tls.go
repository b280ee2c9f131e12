package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/nodetls"
	"tarry/internal/certs"
	"tarry/internal/secretkeys"
)

// gossipKeys reads the keys that encrypt this node's gossip; nil: there are none.
func (c *Config) gossipKeys() (*gossipkeys.Ring, error) {
	if c.GossipKeysFile == "" {
		return nil, nil
	}
	ring, err := gossipkeys.Open(c.GossipKeysFile)
	if err != nil {
		return nil, fmt.Errorf("the keys of gossip (--gossip-keys-file): %w", err)
	}
	return ring, nil
}

// secretKeys reads the keys that seal secrets; nil: there are none.
func (c *Config) secretKeys() (*secretkeys.Ring, error) {
	if c.SecretsKeyFile == "" {
		return nil, nil
	}
	ring, err := secretkeys.Open(c.SecretsKeyFile)
	if err != nil {
		return nil, fmt.Errorf("the keys of secrets (--secrets-key-file): %w", err)
	}
	return ring, nil
}

// reloadEvery is how often the files of certificates are looked at; SIGHUP does it at once.
const reloadEvery = 10 * time.Second

// certificates are those that a node uses, by the port that shows them.
type certificates struct {
	log     *slog.Logger
	ports   []string
	sources []*certs.Source
	secrets *secretkeys.Ring // they are read again likewise; nil: there are none

	expiry, failures *prometheus.Desc
}

func newCertificates(log *slog.Logger) *certificates {
	return &certificates{
		log:      log,
		expiry:   prometheus.NewDesc("tarry_certificate_expiry_seconds", "Time until the certificate that a port shows ends; negative after that.", []string{"port"}, nil),
		failures: prometheus.NewDesc("tarry_tls_reload_failures_total", "Changed certificate files that were refused; the certificate before remains in use.", []string{"port"}, nil),
	}
}

func (c *certificates) add(port string, s *certs.Source) {
	c.ports, c.sources = append(c.ports, port), append(c.sources, s)
}

// watch reloads certificates that change until the returned function is called, and calls hungUp at
// each SIGHUP. That must not end a node whose operator wants a reload, whether it has certificates or not.
func (c *certificates) watch(ctx context.Context, hungUp func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var done sync.WaitGroup
	done.Go(func() {
		defer signal.Stop(hangup)
		tick := time.NewTicker(reloadEvery)
		defer tick.Stop()
		if len(c.sources) == 0 && c.secrets == nil {
			tick.Stop()
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				hungUp()
			case <-tick.C:
			}
			c.reload()
		}
	})
	return func() { cancel(); done.Wait() }
}

func (c *certificates) reload() {
	if c.secrets != nil {
		switch changed, err := c.secrets.Reload(); {
		case err != nil:
			c.log.Error("cannot use the changed keys of secrets", "error", err)
		case changed:
			c.log.Info("keys of secrets reloaded", "keys", c.secrets.IDs())
		}
	}
	for i, s := range c.sources {
		changed, err := s.Reload()
		switch {
		case err != nil:
			c.log.Error("cannot use a changed certificate", "port", c.ports[i], "error", err)
		case changed:
			c.log.Info("certificate reloaded", "port", c.ports[i], "ends", s.Current().Certificate.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
	}
}

// Describe implements prometheus.Collector.
func (c *certificates) Describe(ch chan<- *prometheus.Desc) { ch <- c.expiry; ch <- c.failures }

// Collect implements prometheus.Collector.
func (c *certificates) Collect(ch chan<- prometheus.Metric) {
	for i, s := range c.sources {
		left := time.Until(s.Current().Certificate.Leaf.NotAfter)
		ch <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, left.Seconds(), c.ports[i])
		ch <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(s.Failures()), c.ports[i])
	}
}

// nodeTLS reads the certificate of this node among nodes.
func (c *Config) nodeTLS(all *certificates) (nodetls.Config, error) {
	if c.ClusterTLSMode == nodetls.Off {
		return nodetls.Config{}, nil
	}
	id, err := nodetls.Open(c.ClusterTLS, c.NodeID)
	if err != nil {
		return nodetls.Config{}, fmt.Errorf("TLS between nodes (--cluster-tls-cert, --cluster-tls-key, --cluster-tls-ca): %w", err)
	}
	all.add("cluster", id.Source())
	return nodetls.Config{Mode: c.ClusterTLSMode, Identity: id}, nil
}
