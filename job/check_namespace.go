package job

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"tarry/job/jobpb"
)

// The rules of namespaces that need not the others; see oplog.CheckOp.

// CheckNamespaceName checks the name of a namespace: 1 to MaxNamespaceNameBytes of a-z, 0-9
// and -, so that it is a label of a metric and a part of a path as it is.
func (l *Limits) CheckNamespaceName(field, name string) error {
	return CheckLabel(field, name, l.MaxNamespaceNameBytes)
}

// CheckNamespace checks a namespace as it is put.
func (l *Limits) CheckNamespace(n *jobpb.Namespace) error {
	if n == nil {
		return Invalid("name", "is missing")
	}
	if err := cmp.Or(l.CheckNamespaceName("name", n.Name), l.CheckTopic("topic_prefix", n.TopicPrefix)); err != nil {
		return err
	}
	if strings.Contains(n.TopicPrefix, "*") { // as a token's rule has it
		return Invalid("topic_prefix", "is %.40q; it is a prefix without a *, such as billing.", n.TopicPrefix)
	}
	if n.IdPrefix != "" {
		if err := l.CheckID("id_prefix", n.IdPrefix); err != nil {
			return err
		}
	}
	switch rate := n.Quotas.GetRateMilli(); {
	case n.Quotas != nil && n.Quotas.RateMilli != nil && rate == 0:
		return Invalid("quotas.rate", "is 0; it must be above 0, or null for no limit")
	case rate > l.MaxRateMilli:
		return Invalid("quotas.rate", "is above %d a second", l.MaxRateMilli/1000)
	case len(n.Description) > l.MaxDescriptionBytes:
		return Invalid("description", "has %d bytes; the limit is %d", len(n.Description), l.MaxDescriptionBytes)
	case !utf8.ValidString(n.Description):
		return Invalid("description", "is not valid UTF-8")
	case n.Revision != 0:
		return Invalid("revision", "is set by the state machine alone")
	}
	return nil
}
