package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
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
		return x.refuse(r, jobpb.Code_CONDITION_FAILED,
			"namespace %q has revision %d, not %d; 0 stands for none", made.Name, made.Revision, *op.IfRevision)
	case old == nil && len(x.m.namespaces) >= x.limits().MaxNamespaces:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there are %d namespaces already, which is the limit", len(x.m.namespaces))
	}
	for _, n := range x.m.namespaces {
		if n != old && (strings.HasPrefix(made.TopicPrefix, n.Def.TopicPrefix) || strings.HasPrefix(n.Def.TopicPrefix, made.TopicPrefix)) {
			return x.refuseInvalid(job.Invalid("topic_prefix",
				"is %.40q; namespace %q has %.40q, and a topic is in one namespace at most", made.TopicPrefix, n.Def.Name, n.Def.TopicPrefix), r)
		}
	}
	made.Revision = x.takeNumber()
	encoded, err := record.EncodeNamespace(made)
	if err != nil {
		return err
	}
	x.key = record.AppendNamespaceKey(x.key[:0], record.NamespaceDef, made.Name)
	x.setConfig(x.key, encoded)
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
	x.key = record.AppendNamespaceKey(x.key[:0], record.NamespaceDef, n.Def.Name)
	x.setConfig(x.key, nil)
	x.key = record.AppendNamespaceKey(x.key[:0], record.NamespaceUse, n.Def.Name)
	must(x.batch.Delete(x.key, nil))
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

// Quotas of a namespace are enforced here, in the order of the log, where jobs join its
// topics: an add, a move or a kick from the topic of another namespace, a longer body.
// Nothing else is refused: jobs are delivered, finished, retried and die also in a namespace
// that has more than its quotas allow, because they were lowered or came later.

// namespace is a namespace in memory.
type namespace struct {
	record.Namespace
	settings uint64 // topics with settings, which need not exist; derived from the settings
	touched  bool   // its use changed in the transaction and must be written
	gone     bool   // deleted in the transaction
}

// loadNamespaces reads all namespaces, in the order of their prefixes.
func loadNamespaces(r pebble.Reader) (all []*namespace, err error) {
	stored, err := record.ReadNamespaces(r)
	for _, n := range stored {
		all = append(all, &namespace{Namespace: *n})
	}
	return all, err
}

// Namespaces are the namespaces as of a commit, by which other goroutines find that of a
// topic. They do not change. nil: there are none.
type Namespaces struct {
	byPrefix   []*jobpb.Namespace // in the order of their prefixes
	byIDPrefix []*jobpb.Namespace // those that have one, in the order of these
	rated      bool               // one of them has a rate
}

func newNamespaces(all []*namespace) *Namespaces {
	if len(all) == 0 {
		return nil
	}
	s := &Namespaces{byPrefix: make([]*jobpb.Namespace, len(all))}
	for i, n := range all {
		s.byPrefix[i] = n.Def
		if n.Def.IdPrefix != "" {
			s.byIDPrefix = append(s.byIDPrefix, n.Def)
		}
		s.rated = s.rated || n.Def.GetQuotas().GetRateMilli() > 0
	}
	slices.SortStableFunc(s.byIDPrefix, func(a, b *jobpb.Namespace) int { return cmp.Compare(a.IdPrefix, b.IdPrefix) })
	return s
}

// Rated reports whether one of them has a rate.
func (s *Namespaces) Rated() bool { return s.rated }

// OfID returns the namespace whose jobs have ids like this one, as far as the prefixes of ids
// tell; nil: that is not known.
func (s *Namespaces) OfID(id string) *jobpb.Namespace {
	if i := record.IndexOfPrefix(len(s.byIDPrefix), id, func(i int) string { return s.byIDPrefix[i].IdPrefix }); i >= 0 {
		return s.byIDPrefix[i]
	}
	return nil
}

// Of returns the namespace of a topic; nil: it is in none.
func (s *Namespaces) Of(topic string) *jobpb.Namespace {
	if s == nil {
		return nil
	}
	if i := record.IndexOfPrefix(len(s.byPrefix), topic, func(i int) string { return s.byPrefix[i].TopicPrefix }); i >= 0 {
		return s.byPrefix[i]
	}
	return nil
}

// All returns all namespaces, in the order of their prefixes.
func (s *Namespaces) All() []*jobpb.Namespace {
	if s == nil {
		return nil
	}
	return s.byPrefix
}

// namespaceOf returns the namespace of the topic of that name; nil: it is in none.
func (mem *memory) namespaceOf(topic string) *namespace {
	if len(mem.namespaces) == 0 {
		return nil
	}
	if i := record.IndexOfPrefix(len(mem.namespaces), topic, func(i int) string { return mem.namespaces[i].Def.TopicPrefix }); i >= 0 {
		return mem.namespaces[i]
	}
	return nil
}

// namespaceFor returns the namespace of the topic of that name; t is the topic, or nil.
func (x *tx) namespaceFor(name string, t *topic) *namespace {
	if t != nil {
		return t.namespace
	}
	return x.m.namespaceOf(name)
}

// hold adds to what a topic holds, and its namespace.
func (x *tx) hold(t *topic, jobs, bytes int64) {
	t.Bytes += uint64(bytes)
	if n := t.namespace; n != nil {
		n.Jobs += uint64(jobs)
		n.Bytes += uint64(bytes)
		x.touchNamespace(n)
	}
}

// countTopic adds to the topics of a topic's namespace.
func (x *tx) countTopic(t *topic, more int64) {
	if n := t.namespace; n != nil {
		n.Topics += uint64(more)
		x.touchNamespace(n)
	}
}

func (x *tx) touchNamespace(n *namespace) {
	if !n.touched {
		n.touched = true
		x.namespaces = append(x.namespaces, n)
	}
}

// writeNamespaces writes what the namespaces hold that changed.
func (x *tx) writeNamespaces() {
	for _, n := range x.namespaces {
		n.touched = false
		if n.gone {
			continue
		}
		x.value = n.Usage.Append(x.value[:0])
		x.key = record.AppendNamespaceKey(x.key[:0], record.NamespaceUse, n.Def.Name)
		must(x.batch.Set(x.key, x.value, nil))
	}
	clear(x.namespaces)
	x.namespaces = x.namespaces[:0]
}

// growth is what an operation would add to a namespace. A number below 0 is what it takes
// away.
type growth struct{ jobs, bytes, topics int64 }

// overQuota describes the first quota that a namespace would exceed; empty: none. A quota
// refuses only what makes the number grow that it bounds.
func (n *namespace) overQuota(more growth) string {
	if n == nil || n.Def.Quotas == nil {
		return ""
	}
	q := n.Def.Quotas
	for _, one := range [...]struct {
		name  string
		limit *uint64
		used  uint64
		more  int64
	}{
		{"jobs", q.Jobs, n.Jobs, more.jobs},
		{"bytes", q.Bytes, n.Bytes, more.bytes},
		{"topics", q.Topics, n.Topics, more.topics},
	} {
		if one.limit != nil && one.more > 0 && one.used+uint64(one.more) > *one.limit {
			return fmt.Sprintf(
				"namespace %q has no room: its quota, %s, is %d; in use: %d, this would add: %d", n.Def.Name, one.name, *one.limit, one.used, one.more)
		}
	}
	return ""
}

// overSettings describes why no more topics may get settings; empty: one more may. Settings
// outlive their topic, so they are counted beside the topics, to the same limit.
func (n *namespace) overSettings() string {
	if n == nil || n.Def.Quotas == nil || n.Def.Quotas.Topics == nil || n.settings < *n.Def.Quotas.Topics {
		return ""
	}
	return fmt.Sprintf(
		"namespace %q has no room for settings of another topic: its quota, topics, is %d; topics with settings: %d",
		n.Def.Name, *n.Def.Quotas.Topics, n.settings)
}

// countSettings counts in its namespace that the settings of a topic change; nil: none.
func (mem *memory) countSettings(topic string, old, made *jobpb.TopicSettings) {
	n := mem.namespaceOf(topic)
	switch {
	case n == nil:
	case old == nil && made != nil:
		n.settings++
	case old != nil && made == nil:
		n.settings--
	}
}

// settingsUnder returns how many topics with a prefix have settings.
func (mem *memory) settingsUnder(prefix string) (n uint64) {
	for topic := range mem.settings { // a count, whatever the order
		if strings.HasPrefix(topic, prefix) {
			n++
		}
	}
	return n
}

// fits reports whether a namespace may grow so much; if not, it refuses the operation.
func (x *tx) fits(n *namespace, more growth, r *jobpb.Result) bool {
	why := n.overQuota(more)
	if why != "" {
		_ = x.refuse(r, jobpb.Code_OVER_QUOTA, "%s", why)
	}
	return why == ""
}

// newTopics returns how many topics must be made for a job of t.
func newTopics(t *topic) int64 {
	if t == nil {
		return 1
	}
	return 0
}

// checkNamespaceID returns an error if a producer's id does not begin as the namespace
// demands.
func (n *namespace) checkID(id string) error {
	if n == nil || id == "" || strings.HasPrefix(id, n.Def.IdPrefix) {
		return nil
	}
	return job.Invalid("id", "is %.40q; the ids of jobs in namespace %q begin with %q", id, n.Def.Name, n.Def.IdPrefix)
}

// lacksRoom describes why a job of t may not go to the topic of that name; empty: it may.
// Within a namespace only a new topic takes room.
func (x *tx) lacksRoom(rec *record.Job, t *topic, name string) string {
	if len(x.m.namespaces) == 0 {
		return ""
	}
	target := x.m.topics[name]
	n := x.namespaceFor(name, target)
	more := growth{topics: newTopics(target)}
	if n != t.namespace {
		more.jobs, more.bytes = 1, int64(rec.BodyLen)
	}
	return n.overQuota(more)
}

// roomFor reports whether a job of t may go to the topic of that name; if not, it refuses the
// operation.
func (x *tx) roomFor(rec *record.Job, t *topic, name string, r *jobpb.Result) bool {
	why := x.lacksRoom(rec, t, name)
	if why != "" {
		_ = x.refuse(r, jobpb.Code_OVER_QUOTA, "%s", why)
	}
	return why == ""
}

// roomForAll is roomFor for several jobs of t, which take all bytes of t at most: those of
// some of its lists are not counted.
func (x *tx) roomForAll(t *topic, jobs uint64, name string, r *jobpb.Result) bool {
	target := x.m.topics[name]
	n := x.namespaceFor(name, target)
	more := growth{topics: newTopics(target)}
	if n != t.namespace {
		more.jobs, more.bytes = int64(jobs), int64(t.Bytes)
	}
	return x.fits(n, more, r)
}
