package fsm

import (
	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// Namespaces returns all namespaces and what they hold, in the order of their names.
func (v *View) Namespaces() (list []*jobpb.NamespaceUse, err error) {
	err = v.read(func(r pebble.Reader) error {
		all, err := readNamespaces(r)
		for _, n := range all {
			list = append(list, n.use())
		}
		return err
	})
	return list, err
}

// Namespace returns a namespace by its name; nil: there is none.
func (v *View) Namespace(name string) (use *jobpb.NamespaceUse, err error) {
	err = v.read(func(r pebble.Reader) error {
		return readKey(r, appendNamespaceKey(nil, namespaceDef, name), func(value []byte) error {
			def, err := decodeNamespace(name, value)
			if err != nil {
				return err
			}
			n := &namespace{def: def}
			if n.usage, err = readUsage(r, name); err == nil {
				use = n.use()
			}
			return err
		})
	})
	return use, err
}

func (n *namespace) use() *jobpb.NamespaceUse {
	return &jobpb.NamespaceUse{Namespace: n.def, Jobs: n.jobs, Bytes: n.bytes, Topics: n.topics}
}
