package fsm

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// mayChangeNamespaces needs the verb admin, also in the mode that only reports, as all that needs
// it. The mode off does not check it: unlike a token, a namespace hides nothing.
func mayChangeNamespaces(x *tx, _ *jobpb.Op, r *jobpb.Result) (bool, error) {
	missing, why := x.caller.lacks(auth.Admin, "")
	if missing != 0 {
		x.deny(missing, "", why)
		x.forbid(missing, "", why, r)
	}
	return missing == 0, nil
}

// putNamespace makes or replaces a namespace. An equal one changes nothing, so a request is
// safe to repeat. With another prefix it holds other topics; they are counted from the
// counts that each topic has.
func (x *tx) putNamespace(op *jobpb.PutNamespace, r *jobpb.Result) error {
	old := x.namespaceNamed(op.Namespace.Name)
	made := proto.CloneOf(op.Namespace)
	if old != nil {
		made.Revision = old.Def.Revision
	}
	switch {
	case old != nil && proto.Equal(made, old.Def):
		r.Existing = true
		return x.namespaceResult(old.Def.Revision, r)
	case old != nil && op.IfRevision != nil && *op.IfRevision == 0:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "namespace %q exists already, with revision %d", made.Name, made.Revision)
	case op.IfRevision != nil && *op.IfRevision != made.Revision:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "namespace %q has revision %d, not %d; 0 stands for none", made.Name, made.Revision, *op.IfRevision)
	case old == nil && len(x.m.namespaces) >= x.limits().MaxNamespaces:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there are %d namespaces already, which is the limit", len(x.m.namespaces))
	}
	for _, n := range x.m.namespaces {
		if n != old && (strings.HasPrefix(made.TopicPrefix, n.Def.TopicPrefix) || strings.HasPrefix(n.Def.TopicPrefix, made.TopicPrefix)) {
			return x.refuseInvalid(job.Invalid("topic_prefix", "is %.40q; namespace %q has %.40q, and a topic is in one namespace at most", made.TopicPrefix, n.Def.Name, n.Def.TopicPrefix), r)
		}
	}
	made.Revision = x.m.meta.State.NextSeq
	x.m.meta.State.NextSeq++
	encoded, err := record.EncodeNamespace(made)
	if err != nil {
		return err
	}
	x.key = record.AppendNamespaceKey(x.key[:0], record.NamespaceDef, made.Name)
	must(x.batch.Set(x.key, encoded, nil))
	kept, err := record.DecodeNamespace(made.Name, encoded) // made aliases the entry
	if err != nil {
		return err
	}
	x.useNamespace(old, kept)
	return x.namespaceResult(kept.Revision, r)
}

// useNamespace puts a definition into force: that of old, or of a new namespace if it is nil.
func (x *tx) useNamespace(old *namespace, def *jobpb.Namespace) {
	n := old
	moves := old == nil || old.Def.TopicPrefix != def.TopicPrefix
	if old == nil {
		n = new(namespace)
		x.m.namespaces = append(x.m.namespaces, n)
	}
	n.Def = def
	slices.SortFunc(x.m.namespaces, func(a, b *namespace) int { return cmp.Compare(a.Def.TopicPrefix, b.Def.TopicPrefix) })
	x.touchNamespace(n)
	x.namespacesChanged = true
	if !moves {
		return
	}
	n.Usage, n.settings = record.Usage{}, x.m.settingsUnder(def.TopicPrefix)
	for _, t := range x.m.topics { // sums, whatever the order
		switch {
		case strings.HasPrefix(t.name, def.TopicPrefix):
			t.namespace = n
			n.Jobs += t.Jobs()
			n.Bytes += t.Bytes
			n.Topics++
		case t.namespace == n:
			t.namespace = nil
		}
	}
}

// deleteNamespace removes a namespace. Its topics and jobs stay, without quotas.
func (x *tx) deleteNamespace(op *jobpb.DeleteNamespace, r *jobpb.Result) error {
	n := x.namespaceNamed(op.Name)
	switch {
	case n == nil:
		return x.refuse(r, jobpb.Code_NOT_FOUND, "namespace %.40q does not exist", op.Name)
	case op.IfRevision != nil && *op.IfRevision != n.Def.Revision:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "namespace %q has revision %d, not %d", n.Def.Name, n.Def.Revision, *op.IfRevision)
	}
	for _, t := range x.m.topics {
		if t.namespace == n {
			t.namespace = nil
		}
	}
	for _, kind := range [...]byte{record.NamespaceDef, record.NamespaceUse} {
		x.key = record.AppendNamespaceKey(x.key[:0], kind, n.Def.Name)
		must(x.batch.Delete(x.key, nil))
	}
	at := slices.Index(x.m.namespaces, n)
	x.m.namespaces = slices.Delete(x.m.namespaces, at, at+1)
	n.gone, x.namespacesChanged = true, true
	return x.namespaceResult(n.Def.Revision, r)
}

// namespaceNamed returns a namespace by its name; nil: there is none.
func (x *tx) namespaceNamed(name string) *namespace {
	for _, n := range x.m.namespaces {
		if n.Def.Name == name {
			return n
		}
	}
	return nil
}

func (x *tx) namespaceResult(revision uint64, r *jobpb.Result) error {
	if x.replies {
		r.Details = &jobpb.Details{NamespaceRevision: revision}
	}
	return nil
}

// Namespaces returns the namespaces as of the last commit; nil: there are none.
func (m *Machine) Namespaces() *Namespaces { return m.namespaceSet.Load() }
