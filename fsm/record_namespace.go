package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// A namespace has two records: its definition, a version byte and a message, which changes
// when it is put; and its use, which changes with its jobs.
const (
	namespaceVersion = 1
	namespaceDef     = 'd'
	namespaceUse     = 'u'
	usageLen         = 1 + 3*8
)

// usage is what a namespace holds: the sums of its topics.
type usage struct {
	jobs   uint64 // in all states
	bytes  uint64 // of their bodies
	topics uint64
}

func (u *usage) append(b []byte) []byte {
	b = append(b, namespaceVersion)
	for _, n := range [...]uint64{u.jobs, u.bytes, u.topics} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeUsage(b []byte) (u usage, err error) {
	if err := checkVersion("record of a namespace's use", b, namespaceVersion); err != nil {
		return usage{}, err
	}
	if len(b) != usageLen {
		return usage{}, fmt.Errorf("record of a namespace's use has %d bytes, want %d", len(b), usageLen)
	}
	for i, n := range [...]*uint64{&u.jobs, &u.bytes, &u.topics} {
		*n = binary.BigEndian.Uint64(b[1+8*i:])
	}
	return u, nil
}

func appendNamespaceKey(b []byte, kind byte, name string) []byte {
	return append(append(b, spaceNamespace, kind), name...)
}

func encodeNamespace(n *jobpb.Namespace) ([]byte, error) {
	b, err := n.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode a namespace: %w", err)
	}
	return append([]byte{namespaceVersion}, b...), nil
}

// decodeNamespace does not keep value.
func decodeNamespace(name string, value []byte) (*jobpb.Namespace, error) {
	if err := checkVersion("namespace record", value, namespaceVersion); err != nil {
		return nil, err
	}
	n := new(jobpb.Namespace)
	if err := n.UnmarshalVTUnsafe(bytes.Clone(value[1:])); err != nil {
		return nil, fmt.Errorf("namespace record: %w", err)
	}
	if n.Name != name || n.Revision == 0 || n.TopicPrefix == "" {
		return nil, fmt.Errorf("the record of namespace %q is of %q, with revision %d and the prefix %q", name, n.Name, n.Revision, n.TopicPrefix)
	}
	return n, nil
}

// readNamespaces reads all namespaces and their use, in the order of their names.
func readNamespaces(r pebble.Reader) (list []*namespace, err error) {
	err = scan(r, []byte{spaceNamespace, namespaceDef}, []byte{spaceNamespace, namespaceDef + 1}, func(key, value []byte) error {
		n := new(namespace)
		var err error
		if n.def, err = decodeNamespace(string(key[2:]), value); err != nil {
			return err
		}
		list = append(list, n)
		n.usage, err = readUsage(r, n.def.Name)
		return err
	})
	return list, err
}

// readUsage reads what a namespace holds; each namespace has a record of that.
func readUsage(r pebble.Reader, name string) (u usage, err error) {
	found := false
	err = readKey(r, appendNamespaceKey(nil, namespaceUse, name), func(value []byte) (err error) {
		found = true
		u, err = decodeUsage(value)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("namespace %q has no record of its use", name)
	}
	return u, err
}
