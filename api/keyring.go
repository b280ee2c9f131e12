package api

import "tarry/job"

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
func (s *server) installKey(x *call) error { return s.changeKeyring(x, job.KeyInstall, "") }

// useKey and removeKey change the key that the path names.
func (s *server) useKey(x *call) error    { return s.changeKeyInPath(x, job.KeyUse) }
func (s *server) removeKey(x *call) error { return s.changeKeyInPath(x, job.KeyRemove) }

func (s *server) changeKeyInPath(x *call, change job.KeyringChange) error {
	key, err := x.pathValue("key")
	if err != nil {
		return err
	}
	if err := job.CheckRefID("key", key); err != nil {
		return err
	}
	return s.changeKeyring(x, change, key)
}

func (s *server) changeKeyring(x *call, change job.KeyringChange, key string) error {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	k, err := s.Operator.ChangeKeyring(ctx, change, key)
	if err != nil {
		return err
	}
	x.json.keyring(k)
	return nil
}

func (w *writer) keyring(k job.Keyring) {
	w.success()
	w.number("revision", k.Revision)
	w.texts("keys", k.Keys)
	w.textUnlessEmpty("changed", k.Changed)
	w.number("current", uint64(k.Current()))
	objects(w, "nodes", k.Nodes, func(n job.NodeRing) {
		w.text("id", n.ID)
		w.number("revision", n.Revision)
		w.texts("keys", n.Keys)
		w.textUnlessEmpty("error", n.Error)
	})
	w.endObject()
}
