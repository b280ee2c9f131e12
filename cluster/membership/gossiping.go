package membership

import (
	"context"
	"errors"
	"net"
	"time"

	"tarry/cluster/membership/gossip"
	"tarry/internal/sleep"
)

// resolveFor is how long Start waits until the node's own name resolves; a
// name service may publish it a moment after the process starts.
const resolveFor = 10 * time.Second

func (m *Membership) openPool(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	m.poolMu.Lock()
	defer m.poolMu.Unlock()
	for {
		m.epoch.Store(uint64(time.Now().UnixNano()))
		p, err := gossip.Open(ctx, gossip.Options{
			Bind: m.cfg.GossipBind, AdvertiseHost: m.cfg.AdvertiseHost,
			Meta: m.meta, Admit: m.admit, Changed: m.gossipChanged, Overruled: m.gossipOverruled,
			Logger: m.cfg.Logger.With("part", "gossip"), Encryption: m.encryption(), Tune: m.cfg.tuneGossip,
		})
		if err == nil {
			m.pool.Store(p)
			return nil
		}
		var unresolved *net.DNSError
		if !errors.As(err, &unresolved) || !sleep.For(ctx, 500*time.Millisecond) {
			return err
		}
	}
}

func (m *Membership) encryption() gossip.Encryption {
	e := gossip.Encryption{Verify: m.cfg.GossipVerify}
	if m.cfg.GossipKeys != nil {
		e.Keys = m.cfg.GossipKeys.Memberlist()
	}
	return e
}

// meta is this node's gossip record as of now.
func (m *Membership) meta() gossip.Meta {
	meta := m.cfg.meta()
	meta.ClusterID = m.ClusterID()
	meta.Epoch = m.epoch.Load()
	meta.Fresh = !m.hasState()
	return meta
}

func (m *Membership) gossipChanged() {
	poke(m.toLeader)
	poke(m.toStarter)
}

// ClusterIDChanged makes gossip spread the cluster's id at once. The node calls it when
// the id is in the state machine. It does not block. Without it the change is
// noticed within seconds.
func (m *Membership) ClusterIDChanged() { poke(m.toWatcher) }

// followAdvertisedIP restarts gossip when the advertised name no longer resolves to the
// address that gossip spreads, as after a container was reconnected to its network.
func (m *Membership) followAdvertisedIP(ctx context.Context) {
	p := m.pool.Load()
	if p != nil {
		lookup, cancel := context.WithTimeout(ctx, askTimeout)
		ip, err := gossip.ResolveHost(lookup, m.cfg.AdvertiseHost)
		cancel()
		if err != nil || ip.Equal(p.IP()) {
			return
		}
		m.cfg.Logger.Warn("the advertised host has a new address; restarting gossip", "host", m.cfg.AdvertiseHost, "old", p.IP(), "new", ip)
	}
	m.reopenPool(ctx, p)
}

// reopenPool closes a pool, unless it is nil, and opens another one under a new name.
func (m *Membership) reopenPool(ctx context.Context, p *gossip.Pool) {
	var known []string
	if p != nil {
		known = p.Known()
		m.pool.Store(nil)
		if err := p.Close(); err != nil {
			m.cfg.Logger.Debug("old gossip did not stop cleanly", "error", err)
		}
	}
	if err := m.openPool(ctx); err != nil && ctx.Err() == nil {
		m.cfg.Logger.Error("gossip did not start; trying again", "error", err)
	}
	m.joinAll(ctx, known)
}

// gossipOverruled is called by gossip.
func (m *Membership) gossipOverruled() {
	m.overruled.Store(true)
	poke(m.toWatcher)
}

// objectAnew gives this node a new name in gossip if it may soon be unable to object to what is
// said of the present one. Anybody can cause that where gossip has no keys, so it is done once in
// a while; last is when.
func (m *Membership) objectAnew(ctx context.Context, last *time.Time) {
	if !m.overruled.Load() || time.Since(*last) < 6*m.cfg.Timing.Rejoin {
		return
	}
	*last = time.Now()
	m.overruled.Store(false)
	if p := m.pool.Load(); p != nil {
		m.cfg.Logger.Warn("somebody announces this node in gossip with records that no node sends; restarting gossip under a new name")
		m.reopenPool(ctx, p)
	}
}
