package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tarry/auth"
	"tarry/fsm/configlog"
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// A data group of a cluster with several shards follows the config group: its leader proposes what the
// config group has decided (ConfigLog), and the state takes it over as it is. Package configlog has
// the rules. What a client may do is decided by the tokens that the group has, if it has heard from the
// config group lately.

// followsConfig reports whether the state is that of a data group.
func (m *Machine) followsConfig() bool { return m.meta.Sharding.GetGroup() != 0 }

// ConfigGroup returns how far a data group has followed the config group, as of the last commit.
func (m *Machine) ConfigGroup() configlog.Group {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.configGroup
}

func (x *tx) useConfigGroup(g configlog.Group) {
	x.m.meta.ConfigGroup, x.configChanged = g, true
	x.value = record.AppendConfigGroup(x.value[:0], &g)
	must(x.batch.Set(record.KeyConfigGroup, x.value, nil))
}

// hear takes note of what the entry says of the config group.
func (x *tx) hear() {
	h := x.ops.Heard()
	if h.AskedMS == 0 || x.followed || !x.m.followsConfig() || x.ops.ClockEpoch() != x.m.meta.Reset.Epoch {
		return
	}
	g := x.m.meta.ConfigGroup
	if g.Hear(configlog.Heard{Term: x.term, AskedMS: h.AskedMS}, configlog.Position{Epoch: h.Epoch, Number: h.Number}) {
		x.useConfigGroup(g)
	}
}

func (x *tx) outOfTouch() {
	g := x.m.meta.ConfigGroup
	g.OutOfTouch()
	x.useConfigGroup(g)
}

// isClients reports whether a client causes an operation.
func isClients(op *jobpb.Op) bool {
	return !oplog.ByNode(op) && !auth.DecodePrincipal(op.Principal).IsSystem() && !auth.DecodePrincipal(op.GetReserve().GetPrincipal()).IsSystem()
}

// refuseOutOfTouch refuses an operation of a client, in an entry with this term and time, while the
// group may not know the present config. It reports whether it did.
func (x *tx) refuseOutOfTouch(term uint64, nowMS int64, r *jobpb.Result) bool {
	g := &x.m.meta.ConfigGroup
	switch {
	// A group that never had a config accepts everything.
	case g.Epoch == 0 && g.Loading.At.Epoch != 0:
		_ = x.refuse(r, jobpb.Code_NOT_APPLIED, "this shard does not have the cluster's tokens and settings yet; try again")
	case x.m.auth.Mode() != jobpb.AuthMode_AUTH_ENFORCE:
		return false
	case !g.Accepts(term, nowMS) || x.ops.ClockEpoch() != x.m.meta.Reset.Epoch:
		_ = x.refuse(r, jobpb.Code_NOT_APPLIED,
			"this shard has not heard from the config group for %d s, and a token may have been revoked since; try again", configlog.LeaseMS/1000)
	default:
		return false
	}
	return true
}

// configLog takes over what a ConfigLog has and the group has not.
func (x *tx) configLog(op *jobpb.ConfigLog, r *jobpb.Result) error {
	switch {
	case !x.m.followsConfig():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "this is not a data group, which alone follows the config group")
	case op.Part != nil:
		return x.configPart(op.Epoch, op.Part, r)
	}
	g := x.m.meta.ConfigGroup
	skip, ok := g.Changes(configlog.Position{Epoch: op.Epoch, Number: op.After}, len(op.Changes))
	if !ok {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED,
			"the group has the config %d.%d, and does not take the changes after %d.%d", g.Epoch, x.m.meta.ConfigGroup.Number, op.Epoch, op.After)
	}
	for i, c := range op.Changes[skip:] {
		raised, err := x.followVersion(c.Version, r)
		if err == nil && raised {
			err = x.useRecords(c.Records)
		}
		if err != nil {
			return err
		}
		if !raised { // what comes before it is done
			g.Number = op.After + uint64(skip+i)
			break
		}
	}
	if g != x.m.meta.ConfigGroup {
		x.useConfigGroup(g)
	}
	return nil
}

// configPart takes over a part of the whole config: also that it has no other records.
func (x *tx) configPart(epoch uint64, p *jobpb.ConfigPart, r *jobpb.Result) error {
	g := x.m.meta.ConfigGroup
	part := configlog.Part{At: configlog.Position{Epoch: epoch, Number: p.Number}, From: string(p.From), Next: string(p.Next)}
	if !g.Part(part) {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED,
			"the group has the config %d.%d, and does not take this part of %d.%d", g.Epoch, g.Number, epoch, p.Number)
	}
	if raised, err := x.followVersion(p.Version, r); err != nil || !raised {
		return err
	}
	if err := x.replaceRecords(part.From, part.Next, p.Records); err != nil {
		return err
	}
	x.useConfigGroup(g)
	return nil
}

// replaceRecords puts records into force, in place of all from one key up to another; empty: the end.
func (x *tx) replaceRecords(from, next string, records []*jobpb.ConfigRecord) error {
	kept := make(map[string]bool)
	for _, c := range records {
		kept[string(c.Key)] = true
	}
	var gone []*jobpb.ConfigRecord
	for _, key := range x.m.configKeys() {
		if key >= from && (next == "" || key < next) && !kept[key] {
			gone = append(gone, &jobpb.ConfigRecord{Key: []byte(key)})
		}
	}
	return x.useRecords(append(gone, records...))
}

// followVersion raises the cluster version to that of the config group; 0: it stays. It reports whether
// the group has it now, and refuses if records of the version before it must be rewritten first.
func (x *tx) followVersion(to uint32, r *jobpb.Result) (bool, error) {
	meta := &x.m.meta
	for meta.Version < to {
		if meta.Migrating != nil {
			return false, x.refuse(r, jobpb.Code_CONDITION_FAILED, "the group still rewrites records for cluster version %d", meta.Version)
		}
		if err := x.raiseVersion(&jobpb.RaiseVersion{To: meta.Version + 1}, r); err != nil {
			return false, err
		}
	}
	return true, nil
}

// configKeys returns the keys of the config's records, in order.
func (mem *memory) configKeys() []string {
	keys := make([]string, 0, len(mem.settings)+mem.auth.Tokens()+len(mem.namespaces)+1)
	for topic := range mem.settings {
		keys = append(keys, string(record.AppendNameKey(nil, record.SpaceSettings, topic)))
	}
	if mem.auth.Revision != 0 {
		keys = append(keys, string(record.KeyAuth))
	}
	for t := range mem.auth.All() {
		keys = append(keys, string(record.AppendNameKey(nil, record.SpaceToken, t.Id)))
	}
	for _, n := range mem.namespaces {
		keys = append(keys, string(record.AppendNamespaceKey(nil, record.NamespaceDef, n.Def.Name)))
	}
	slices.Sort(keys)
	return keys
}

// configNews is what records of the config say of what is put into force as a whole.
type configNews struct {
	auth   *auth.State // without its tokens; nil: it stays
	tokens map[string]*auth.Token
	// namespaces are the definitions by name; nil: it is deleted.
	namespaces map[string]*jobpb.Namespace
}

// useRecords writes records of the config, and puts them into force. They are those of the config
// group, which has checked them.
func (x *tx) useRecords(records []*jobpb.ConfigRecord) error {
	news := configNews{tokens: make(map[string]*auth.Token), namespaces: make(map[string]*jobpb.Namespace)}
	for _, c := range records {
		if len(c.Value) == 0 {
			must(x.batch.Delete(c.Key, nil))
		} else {
			must(x.batch.Set(c.Key, c.Value, nil))
		}
		if err := x.useRecord(string(c.Key), c.Value, &news); err != nil {
			return fmt.Errorf("a record of the config: %w", err)
		}
	}
	x.useTokens(&news)
	x.useNamespaces(news.namespaces)
	return nil
}

// useRecord puts settings into force, and collects the rest. The value is not kept.
func (x *tx) useRecord(key string, value []byte, news *configNews) (err error) {
	name, deleted := "", len(value) == 0
	switch {
	case strings.HasPrefix(key, string(record.SpaceSettings)):
		name = key[1:]
		var s *jobpb.TopicSettings
		if !deleted {
			s, err = record.DecodeSettings(bytes.Clone(value))
		}
		if err == nil {
			x.useSettings(name, s)
		}
	case key == string(record.KeyAuth):
		news.auth = auth.NewState(0, false, nil, nil)
		if !deleted {
			news.auth, err = record.DecodeAuth(value, nil)
		}
	case strings.HasPrefix(key, string(record.SpaceToken)):
		name = key[1:]
		news.tokens[name] = nil
		if !deleted {
			var t *jobpb.Token
			if t, err = record.DecodeToken(name, value); err == nil {
				news.tokens[name] = auth.NewToken(t)
			}
		}
	case strings.HasPrefix(key, string(record.AppendNamespaceKey(nil, record.NamespaceDef, ""))):
		name = key[2:]
		news.namespaces[name] = nil
		if !deleted {
			news.namespaces[name], err = record.DecodeNamespace(name, value)
		}
	default:
		err = fmt.Errorf("key %x is in no keyspace of the config", key)
	}
	return err
}

func (x *tx) useTokens(news *configNews) {
	if news.auth == nil && len(news.tokens) == 0 {
		return
	}
	s := x.m.auth
	var made []*auth.Token
	for _, id := range slices.Sorted(maps.Keys(news.tokens)) {
		if t := news.tokens[id]; t != nil {
			made = append(made, t)
		} else {
			s = s.WithoutToken(s.Revision, id)
		}
	}
	if len(made) > 0 {
		s = s.WithTokens(s.Revision, made)
	}
	if news.auth != nil {
		s = news.auth.WithTokensOf(s)
	}
	x.m.auth, x.authChanged = s, true
}

// useNamespaces puts definitions into force, and counts anew what each namespace holds: one may have the
// prefix that another one had.
func (x *tx) useNamespaces(defs map[string]*jobpb.Namespace) {
	if len(defs) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		n, def := x.namespaceNamed(name), defs[name]
		switch {
		case n == nil && def != nil:
			x.m.namespaces = append(x.m.namespaces, &namespace{Namespace: record.Namespace{Def: def}})
		case n != nil && def != nil:
			n.Def = def
		case n != nil:
			x.key = record.AppendNamespaceKey(x.key[:0], record.NamespaceUse, name)
			must(x.batch.Delete(x.key, nil))
			x.m.namespaces = slices.DeleteFunc(x.m.namespaces, func(other *namespace) bool { return other == n })
			n.gone = true
		}
	}
	slices.SortFunc(x.m.namespaces, func(a, b *namespace) int {
		return cmp.Or(cmp.Compare(a.Def.TopicPrefix, b.Def.TopicPrefix), cmp.Compare(a.Def.Name, b.Def.Name))
	})
	x.namespacesChanged = true
	for _, n := range x.m.namespaces {
		n.Usage, n.settings = record.Usage{}, x.m.settingsUnder(n.Def.TopicPrefix)
		x.touchNamespace(n)
	}
	for _, t := range x.m.topics { // sums, whatever the order
		if t.namespace = x.m.namespaceOf(t.name); t.namespace != nil {
			t.namespace.Jobs += t.Jobs()
			t.namespace.Bytes += t.Bytes
			t.namespace.Topics++
		}
	}
}
