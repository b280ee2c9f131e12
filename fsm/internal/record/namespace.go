package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// IndexOfPrefix returns which of n prefixes in order a topic begins with; -1: none. No prefix
// begins with another, so only the last that is not behind the topic can be it.
func IndexOfPrefix(n int, topic string, prefix func(int) string) int {
	low, high := 0, n
	for low < high {
		if mid := (low + high) / 2; prefix(mid) <= topic {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low > 0 && strings.HasPrefix(topic, prefix(low-1)) {
		return low - 1
	}
	return -1
}

// A namespace has two records: its definition, a version byte and a message, which changes
// when it is put; and its use, which changes with its jobs.
const (
	NamespaceVersion = 1
	NamespaceDef     = 'd'
	NamespaceUse     = 'u'
	usageLen         = 1 + 3*8
)

// Namespace is a namespace as it is stored.
type Namespace struct {
	Def *jobpb.Namespace // never changed, only replaced
	Usage
}

// Describe returns what readers see of a namespace.
func (n *Namespace) Describe() *jobpb.NamespaceUse {
	return &jobpb.NamespaceUse{Namespace: n.Def, Jobs: n.Jobs, Bytes: n.Bytes, Topics: n.Topics}
}

// Usage is what a namespace holds: the sums of its topics.
type Usage struct {
	Jobs   uint64 // in all states
	Bytes  uint64 // of their bodies
	Topics uint64
}

func (u *Usage) Append(b []byte) []byte {
	b = append(b, NamespaceVersion)
	for _, n := range [...]uint64{u.Jobs, u.Bytes, u.Topics} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeUsage(b []byte) (u Usage, err error) {
	if err := checkVersion("record of a namespace's use", b, NamespaceVersion); err != nil {
		return Usage{}, err
	}
	if len(b) != usageLen {
		return Usage{}, fmt.Errorf("record of a namespace's use has %d bytes, want %d", len(b), usageLen)
	}
	for i, n := range [...]*uint64{&u.Jobs, &u.Bytes, &u.Topics} {
		*n = binary.BigEndian.Uint64(b[1+8*i:])
	}
	return u, nil
}

func AppendNamespaceKey(b []byte, kind byte, name string) []byte {
	return append(append(b, SpaceNamespace, kind), name...)
}

func EncodeNamespace(n *jobpb.Namespace) ([]byte, error) {
	b, err := n.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode a namespace: %w", err)
	}
	return append([]byte{NamespaceVersion}, b...), nil
}

// DecodeNamespace does not keep value.
func DecodeNamespace(name string, value []byte) (*jobpb.Namespace, error) {
	if err := checkVersion("namespace record", value, NamespaceVersion); err != nil {
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

// ReadNamespaces reads all namespaces and their use, in the order of their prefixes.
func ReadNamespaces(r pebble.Reader) (list []*Namespace, err error) {
	err = Scan(r, []byte{SpaceNamespace, NamespaceDef}, []byte{SpaceNamespace, NamespaceDef + 1}, func(key, value []byte) error {
		n := new(Namespace)
		var err error
		if n.Def, err = DecodeNamespace(string(key[2:]), value); err != nil {
			return err
		}
		list = append(list, n)
		n.Usage, err = readUsage(r, n.Def.Name)
		return err
	})
	slices.SortFunc(list, func(a, b *Namespace) int { return cmp.Compare(a.Def.TopicPrefix, b.Def.TopicPrefix) })
	return list, err
}

// ReadNamespace reads a namespace and its use; nil: there is none.
func ReadNamespace(r pebble.Reader, name string) (n *Namespace, err error) {
	err = ReadKey(r, AppendNamespaceKey(nil, NamespaceDef, name), func(value []byte) error {
		def, err := DecodeNamespace(name, value)
		if err != nil {
			return err
		}
		n = &Namespace{Def: def}
		n.Usage, err = readUsage(r, name)
		return err
	})
	return n, err
}

// readUsage reads what a namespace holds; each namespace has a record of that.
func readUsage(r pebble.Reader, name string) (u Usage, err error) {
	found := false
	err = ReadKey(r, AppendNamespaceKey(nil, NamespaceUse, name), func(value []byte) (err error) {
		found = true
		u, err = decodeUsage(value)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("namespace %q has no record of its use", name)
	}
	return u, err
}
