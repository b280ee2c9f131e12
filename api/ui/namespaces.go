package ui

import (
	"strings"

	"tarry/client"
)

// maxNamespaces is how many namespaces the page of topics shows.
const maxNamespaces = 50

// namespacesView is the namespaces that the person may see, with what they hold.
type namespacesView struct {
	Rows []namespaceRow
	More uint64 // that are not shown
}

type namespaceRow struct {
	client.Namespace
	Jobs, Bytes, Topics held
}

// held is a number of which a quota may bound the use.
type held struct {
	Used  uint64
	Quota *uint64 // nil: none
}

// Full reports whether nothing more fits.
func (h held) Full() bool { return h.Quota != nil && h.Used >= *h.Quota }

// namespaces returns those with topics whose names begin with prefix.
func (q *request) namespaces(prefix string) (namespacesView, error) {
	var all struct {
		Namespaces []client.Namespace `json:"namespaces"`
	}
	if err := q.read("/v1/namespaces", nil, &all); err != nil {
		return namespacesView{}, err
	}
	var v namespacesView
	for _, n := range all.Namespaces {
		switch of := n.TopicPrefix; {
		case !strings.HasPrefix(of, prefix) && !strings.HasPrefix(prefix, of):
		case len(v.Rows) == maxNamespaces:
			v.More++
		default:
			v.Rows = append(v.Rows, namespaceRow{n, held{n.Use.Jobs, n.Quotas.Jobs}, held{n.Use.Bytes, n.Quotas.Bytes}, held{n.Use.Topics, n.Quotas.Topics}})
		}
	}
	return v, nil
}
