package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
)

// Quotas bound what a namespace holds. One that is nil does not bound it.
type Quotas struct {
	Jobs   *uint64 `json:"jobs,omitzero"`  // in all states
	Bytes  *uint64 `json:"bytes,omitzero"` // of their bodies
	Topics *uint64 `json:"topics,omitzero"`
	// Rate is how many jobs are added a second through each node.
	Rate *float64 `json:"rate,omitzero"`
}

// NamespaceSpec is a namespace as it is put (docs/namespaces.md).
type NamespaceSpec struct {
	// TopicPrefix is that of the topics in the namespace.
	TopicPrefix string `json:"topic_prefix"`
	// IDPrefix is that of the ids which producers give to its jobs; empty: any.
	IDPrefix    string `json:"id_prefix,omitzero"`
	Description string `json:"description,omitzero"`
	Quotas      Quotas `json:"quotas"`
}

// NamespaceUse is what a namespace holds.
type NamespaceUse struct {
	Jobs   uint64 `json:"jobs"`
	Bytes  uint64 `json:"bytes"`
	Topics uint64 `json:"topics"`
}

// Namespace is a namespace and what it holds.
type Namespace struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
	NamespaceSpec
	Use NamespaceUse `json:"use"`
}

// NamespacePut is what became of a namespace.
type NamespacePut struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
	Existing bool   `json:"existing"` // it was the same before
}

// Put makes or replaces a namespace, if the present one has the revision (0: there is
// none; AnyRevision).
func (c Namespaces) Put(ctx context.Context, name string, n NamespaceSpec, revision uint64) (NamespacePut, error) {
	path := namespacePath(name)
	if revision != AnyRevision {
		path += "?if_revision=" + strconv.FormatUint(revision, 10)
	}
	// One that was put already is no other, whatever its revision.
	return ask[NamespacePut](ctx, c.client, request{method: http.MethodPut, path: path, in: n, repeat: true})
}

// Delete removes a namespace. Its topics and jobs stay.
func (c Namespaces) Delete(ctx context.Context, name string) error {
	return c.client.end(ctx, http.MethodDelete, namespacePath(name), nil, new(done))
}

// Get returns a namespace and what it holds.
func (c Namespaces) Get(ctx context.Context, name string) (Namespace, error) {
	return read[Namespace](ctx, c.client, namespacePath(name))
}

// List lists namespaces by name.
func (c Namespaces) List(ctx context.Context) iter.Seq2[Namespace, error] {
	return pages("", func(string) ([]Namespace, string, error) {
		out, err := read[struct {
			Namespaces []Namespace `json:"namespaces"`
		}](ctx, c.client, "/v1/namespaces")
		return out.Namespaces, "", err
	})
}

func namespacePath(name string) string { return "/v1/namespaces/" + segment(name) }
