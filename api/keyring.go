package api

import (
	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/job"
)

// keyring lists the gossip keys of the members by their fingerprints. No call of this API
// takes or gives a key itself.
func (s *server) keyring(x *call) (r wire.Keyring, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	k, err := s.Operator.Keyring(ctx)
	return keyringShown(k), err
}

// installKey makes the leader make a key.
func (s *server) installKey(x *call) (wire.Keyring, error) {
	return s.changeKeyring(x, report.KeyringChange_INSTALL, "")
}

// changeKey changes the key that the path names.
func changeKey(change report.KeyringChange) func(*server, *call) error {
	return answer(func(s *server, x *call) (r wire.Keyring, err error) {
		key, err := x.pathValue("key")
		if err != nil {
			return r, err
		}
		if err := job.CheckRefID("key", key); err != nil {
			return r, err
		}
		return s.changeKeyring(x, change, key)
	})
}

func (s *server) changeKeyring(x *call, change report.KeyringChange, key string) (wire.Keyring, error) {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	k, err := s.Operator.ChangeKeyring(ctx, change, key)
	return keyringShown(k), err
}

func keyringShown(k *report.Keyring) wire.Keyring {
	nodes := each(k.GetNodes(), func(n *report.NodeRing) wire.NodeKeys {
		return wire.NodeKeys{ID: n.Id, Revision: n.GetRing().GetRevision(), Keys: n.GetRing().GetFingerprints(), Error: n.Error}
	})
	ring := k.GetRing()
	return wire.Keyring{Revision: ring.GetRevision(), Keys: ring.GetFingerprints(), Changed: k.GetChanged(), Current: uint64(k.Current()), Nodes: nodes}
}
