package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/internal/hook"
	"tarry/job"
)

// The leader changes the gossip keys by giving all members the next revision of the whole
// ring. A member that it does not reach fetches the ring later (keyring_fetch.go). Two
// leaders might make the same revision; then the ring of the later one wins.

// adoptTimeout bounds the call by which one node adopts keys, which syncs a file.
const adoptTimeout = 5 * time.Second

// Keyring lists the gossip keys of all members, as the leader sees them, in the order of their ids.
// It blocks for some seconds at most.
func (m *Membership) Keyring(ctx context.Context) (*report.Keyring, error) {
	return inOrder(viaLeader(ctx, m, readCall, &memberpb.KeyringRequest{}, (*server).Keyring, memberpb.MembershipClient.Keyring))
}

// ChangeKeyring changes the gossip keys of all members, and returns what each of them has
// then. key is the fingerprint of the key to use or to remove. It blocks for some seconds at
// most.
func (m *Membership) ChangeKeyring(ctx context.Context, change report.KeyringChange, key string) (*report.Keyring, error) {
	req := &memberpb.ChangeKeyringRequest{Change: change, Fingerprint: key}
	return inOrder(viaLeader(ctx, m, writeCall, req, (*server).ChangeKeyring, memberpb.MembershipClient.ChangeKeyring))
}

func inOrder(k *report.Keyring, err error) (*report.Keyring, error) {
	slices.SortFunc(k.GetNodes(), func(a, b *report.NodeRing) int { return strings.Compare(a.Id, b.Id) })
	return k, err
}

func (s *server) Keyring(ctx context.Context, _ *memberpb.KeyringRequest) (*report.Keyring, error) {
	if r := s.m.raft.Load(); r == nil || r.State() != raft.Leader {
		return nil, errNotLeader
	}
	_, nodes := s.m.askRings(ctx)
	return &report.Keyring{Ring: s.m.ringState(), Nodes: nodes}, nil
}

func (s *server) ChangeKeyring(ctx context.Context, req *memberpb.ChangeKeyringRequest) (*report.Keyring, error) {
	return s.m.changeKeyringHere(ctx, req)
}

// ringState names this node's keys; nil: it has none.
func (m *Membership) ringState() *report.RingState {
	if m.cfg.GossipKeys == nil {
		return nil
	}
	k := m.cfg.GossipKeys.Keys()
	return &report.RingState{Revision: k.Revision, Term: k.Term, Fingerprints: k.Fingerprints()}
}

func versionOf(r *report.RingState) gossipkeys.Version {
	return gossipkeys.Version{Revision: r.GetRevision(), Term: r.GetTerm(), Fingerprints: r.GetFingerprints()}
}

// askRings asks all members for their keys. The two lists have the same order.
func (m *Membership) askRings(ctx context.Context) ([]gossip.Member, []*report.NodeRing) {
	members := m.configured()
	rings := make([]*report.NodeRing, len(members))
	for i, a := range m.askAll(ctx, members) {
		rings[i] = &report.NodeRing{Id: members[i].NodeID, Ring: a.GetKeyring()}
		if a == nil {
			rings[i].Error = "it does not reply"
		}
	}
	return members, rings
}

// configured lists the servers of Raft's configuration, at the addresses that they have now.
func (m *Membership) configured() []gossip.Member {
	servers := m.configuration().Servers
	list := make([]gossip.Member, len(servers))
	for i, s := range servers {
		addr, err := m.ServerAddr(s.ID)
		if err != nil {
			addr = s.Address
		}
		list[i].NodeID, list[i].ServerID, list[i].ClusterAddr = raftconfig.NodeID(s.ID), string(s.ID), string(addr)
	}
	return list
}

// keysTravel reports whether this node has keys, and can exchange them with others.
func (m *Membership) keysTravel() bool { return m.cfg.GossipKeys != nil && m.cfg.SecureCalls }

// maySendKeys returns an error unless keysTravel.
func (m *Membership) maySendKeys() error {
	if m.cfg.GossipKeys == nil {
		return job.Errorf(job.CodeConflict, "%s has no gossip keys: start all nodes with --gossip-keys-file first (tarry keygen)", m.cfg.NodeID)
	}
	if !m.cfg.SecureCalls {
		return job.Errorf(job.CodeConflict, "gossip keys would travel between nodes in plain text: that needs --cluster-tls-mode=require on all nodes, and %s has another mode; "+
			"without it, change the keys in the file of each node (docs/tls.md)", m.cfg.NodeID)
	}
	return nil
}

func (m *Membership) changeKeyringHere(ctx context.Context, req *memberpb.ChangeKeyringRequest) (*report.Keyring, error) {
	r := m.raft.Load()
	if m.leadership.Load() == nil {
		return nil, errNotLeader
	}
	if err := m.maySendKeys(); err != nil {
		return nil, err
	}
	end, err := m.beginChange(ctx) // so that no member is added meanwhile, either
	if err != nil {
		return nil, err
	}
	defer end()
	// The term before the check: a node that is no leader any more may know a later one.
	term := r.CurrentTerm()
	if r.VerifyLeader().Error() != nil {
		return nil, errNotLeader
	}
	members, rings := m.askRings(ctx)
	now := m.cfg.GossipKeys.Keys()
	for _, n := range rings {
		if gossipkeys.Newer(versionOf(n.Ring), now.Version()) {
			return nil, job.NotApplied("%s has newer gossip keys than the leader %s, which is about to fetch them; try again in some seconds", n.Id, m.cfg.NodeID)
		}
	}
	next, changed, err := nextRing(now, req, rings)
	if err != nil {
		return nil, err
	}
	next.Term = term
	if err := m.adopt(next, m.cfg.NodeID); err != nil {
		return nil, job.Errorf(job.CodeInternal, "nothing was changed: %s cannot adopt the keys: %w", m.cfg.NodeID, err)
	}
	rings = m.spread(ctx, next, members)
	if l := m.leadership.Load(); l != nil {
		for i, n := range rings { // health must not wait for the next status
			l.rings.record(raft.ServerID(members[i].ServerID), n.Ring)
		}
	}
	return &report.Keyring{Ring: m.ringState(), Nodes: rings, Changed: changed}, nil
}

// nextRing returns the ring after a change, and the fingerprint of the key that changed.
// rings are those of the members.
func nextRing(now gossipkeys.Keys, req *memberpb.ChangeKeyringRequest, rings []*report.NodeRing) (next gossipkeys.Keys, changed string, err error) {
	next = gossipkeys.Keys{Revision: now.Revision + 1, List: slices.Clone(now.List)}
	if next.Revision == 0 {
		return next, "", job.Errorf(job.CodeConflict, "the gossip keys have the last revision: remove its line from the file of each node, and restart them")
	}
	if req.Change == report.KeyringChange_INSTALL {
		if len(now.List) == gossipkeys.MaxKeys {
			return next, "", job.Errorf(job.CodeConflict, "there are %d gossip keys, the most that there may be: remove one first", gossipkeys.MaxKeys)
		}
		key := gossipkeys.New()
		next.List = append(next.List, key)
		return next, key.Fingerprint(), next.Check()
	}
	at := slices.Index(now.Fingerprints(), req.Fingerprint)
	if at < 0 {
		return next, "", job.Errorf(job.CodeNotFound, "the leader has no gossip key %.64q; tarry keyring list shows them", req.Fingerprint)
	}
	key := now.List[at]
	if req.Change != report.KeyringChange_REMOVE || !hook.Mutant(hook.KeepKey) {
		next.List = slices.Delete(next.List, at, at+1)
	}
	switch req.Change {
	case report.KeyringChange_USE:
		next.List = slices.Insert(next.List, 0, key)
		// Those that do not reply fetch the ring before they gossip with it.
		if lack := without(rings, func(n *report.NodeRing) bool {
			return n.Error != "" || slices.Contains(n.Ring.GetFingerprints(), req.Fingerprint)
		}); lack != "" {
			return next, "", job.Errorf(job.CodeConflict, "not all members have gossip key %s: %s", req.Fingerprint, lack)
		}
	case report.KeyringChange_REMOVE:
		if at == 0 {
			return next, "", job.Errorf(job.CodeConflict, "gossip key %s encrypts now: use another one first (tarry keyring use)", req.Fingerprint)
		}
		primary := now.List[0].Fingerprint()
		if lack := without(rings, func(n *report.NodeRing) bool {
			return n.Error == "" && len(n.Ring.GetFingerprints()) > 0 && n.Ring.Fingerprints[0] == primary
		}); lack != "" {
			return next, "", job.Errorf(job.CodeConflict, "a gossip key is removed only when all members encrypt with %s, because they might still need it: %s", primary, lack)
		}
	default:
		return next, "", job.Errorf(job.CodeInvalid, "the change of the gossip keys is %d, which this release does not know", req.Change)
	}
	return next, req.Fingerprint, nil
}

// without lists the members that are not ok, each with what it has; empty: there are none.
func without(rings []*report.NodeRing, ok func(*report.NodeRing) bool) string {
	var list []string
	for _, n := range rings {
		switch {
		case ok(n):
		case n.Error != "":
			list = append(list, n.Id+": "+n.Error)
		case len(n.Ring.GetFingerprints()) == 0:
			list = append(list, n.Id+" has no keys")
		default:
			list = append(list, n.Id+" has "+strings.Join(n.Ring.Fingerprints, ", "))
		}
	}
	return strings.Join(list, "; ")
}

// spread gives a ring to all members, and returns what each has then.
func (m *Membership) spread(ctx context.Context, ring gossipkeys.Keys, members []gossip.Member) []*report.NodeRing {
	rings := make([]*report.NodeRing, len(members))
	var wg sync.WaitGroup
	for i, n := range members {
		wg.Go(func() { rings[i] = m.give(ctx, ring, n) })
	}
	wg.Wait()
	return rings
}

func (m *Membership) give(ctx context.Context, ring gossipkeys.Keys, to gossip.Member) *report.NodeRing {
	if to.ServerID == m.cfg.ServerID {
		return &report.NodeRing{Id: to.NodeID, Ring: m.ringState()}
	}
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	c, err := m.client(ctx, to.ServerID, to.ClusterAddr)
	if err == nil {
		var resp *memberpb.AdoptKeysResponse
		if resp, err = c.AdoptKeys(ctx, keysToPB(ring)); err == nil {
			return &report.NodeRing{Id: to.NodeID, Ring: resp.Ring, Error: resp.Error}
		}
	}
	m.cfg.Logger.Debug("gossip keys not delivered", "to", to.NodeID, "error", err)
	why := "it does not reply; it fetches the keys when it is back"
	if _, alive := m.PeerByServerID(to.ServerID); alive {
		why = "it is alive but did not reply in time; until it has fetched the keys, it may not understand the others' gossip"
	}
	return &report.NodeRing{Id: to.NodeID, Error: why}
}

// adopt makes this node use newer keys.
func (m *Membership) adopt(ring gossipkeys.Keys, from string) error {
	before := m.cfg.GossipKeys.Keys()
	if err := m.cfg.GossipKeys.Adopt(ring); err != nil {
		return err
	}
	if !before.Equal(ring) {
		m.cfg.Logger.Info("gossip keys changed", "revision", ring.Revision, "keys", len(ring.List), "encrypts", ring.List[0].Fingerprint(), "from", from)
	}
	return nil
}

var errBadKeys = errors.New("the message has no valid keys")

func (s *server) AdoptKeys(_ context.Context, req *memberpb.GossipKeys) (*memberpb.AdoptKeysResponse, error) {
	resp := &memberpb.AdoptKeysResponse{}
	ring, err := keysFromPB(req)
	if err == nil {
		err = s.m.maySendKeys()
	}
	if r := s.m.raft.Load(); err == nil && (r == nil || ring.Term < r.CurrentTerm()) {
		err = fmt.Errorf("the keys are of a leader of term %d, and this node knows a later leader", ring.Term)
	}
	if err == nil {
		err = s.m.adopt(ring, "the leader")
	}
	if err != nil {
		resp.Error = err.Error()
	}
	resp.Ring = s.m.ringState()
	return resp, nil
}

func (s *server) FetchKeys(context.Context, *memberpb.FetchKeysRequest) (*memberpb.GossipKeys, error) {
	if err := s.m.maySendKeys(); err != nil {
		return nil, err
	}
	return keysToPB(s.m.cfg.GossipKeys.Keys()), nil
}

func keysToPB(k gossipkeys.Keys) *memberpb.GossipKeys {
	msg := &memberpb.GossipKeys{Revision: k.Revision, Term: k.Term}
	for _, key := range k.List {
		msg.Keys = append(msg.Keys, slices.Clone(key[:]))
	}
	return msg
}

func keysFromPB(msg *memberpb.GossipKeys) (k gossipkeys.Keys, err error) {
	k.Revision, k.Term = msg.GetRevision(), msg.GetTerm()
	for _, b := range msg.GetKeys() {
		if len(b) != gossipkeys.KeyBytes || len(k.List) == gossipkeys.MaxKeys {
			return gossipkeys.Keys{}, errBadKeys
		}
		k.List = append(k.List, gossipkeys.Key(b))
	}
	if err := k.Check(); err != nil {
		return gossipkeys.Keys{}, fmt.Errorf("%w: %w", errBadKeys, err)
	}
	return k, nil
}
