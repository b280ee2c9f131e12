package api

import (
	"tarry/cluster/report"
	"tarry/job"
)

// keyring lists the gossip keys of the members by their fingerprints. No call of this API
// takes or gives a key itself.
func (s *server) keyring(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	k, err := s.Operator.Keyring(ctx)
	if err != nil {
		return err
	}
	x.json.keyring(k)
	return nil
}

// installKey makes the leader make a key.
func (s *server) installKey(x *call) error {
	return s.changeKeyring(x, report.KeyringChange_INSTALL, "")
}

// useKey and removeKey change the key that the path names.
func (s *server) useKey(x *call) error    { return s.changeKeyInPath(x, report.KeyringChange_USE) }
func (s *server) removeKey(x *call) error { return s.changeKeyInPath(x, report.KeyringChange_REMOVE) }

func (s *server) changeKeyInPath(x *call, change report.KeyringChange) error {
	key, err := x.pathValue("key")
	if err != nil {
		return err
	}
	if err := job.CheckRefID("key", key); err != nil {
		return err
	}
	return s.changeKeyring(x, change, key)
}

func (s *server) changeKeyring(x *call, change report.KeyringChange, key string) error {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	k, err := s.Operator.ChangeKeyring(ctx, change, key)
	if err != nil {
		return err
	}
	x.json.keyring(k)
	return nil
}

func (w *writer) keyring(k *report.Keyring) {
	w.success()
	w.number("revision", k.GetRing().GetRevision())
	w.texts("keys", k.GetRing().GetFingerprints())
	w.textUnlessEmpty("changed", k.Changed)
	w.number("current", uint64(k.Current()))
	objects(w, "nodes", k.Nodes, func(n *report.NodeRing) {
		w.text("id", n.Id)
		w.number("revision", n.GetRing().GetRevision())
		w.texts("keys", n.GetRing().GetFingerprints())
		w.textUnlessEmpty("error", n.Error)
	})
	w.endObject()
}
