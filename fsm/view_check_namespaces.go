package fsm

import (
	"fmt"
	"strings"
)

// checkNamespaces compares what each namespace holds with the sums of its topics, and checks
// that no topic can be in two.
func (c *checker) checkNamespaces() error {
	all, err := readNamespaces(c.r)
	if err != nil {
		return err
	}
	sortNamespaces(all)
	records := 0
	if err := c.scan(spaceNamespace, func(_, _ []byte) error { records++; return nil }); err != nil {
		return err
	}
	if records != 2*len(all) {
		return fmt.Errorf("%d namespaces have %d records; each has two", len(all), records)
	}
	sums := make([]usage, len(all))
	err = c.scan(spaceTopic, func(key, value []byte) error {
		rec, err := decodeTopic(value)
		if err != nil {
			return err
		}
		name := string(key[1:])
		if i := indexOfPrefix(len(all), name, func(i int) string { return all[i].def.TopicPrefix }); i >= 0 {
			sums[i].jobs += rec.jobs()
			sums[i].bytes += rec.bytes
			sums[i].topics++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, n := range all {
		if n.usage != sums[i] {
			return fmt.Errorf("namespace %q holds %+v, its record says %+v", n.def.Name, sums[i], n.usage)
		}
		if n.def.Revision >= c.meta.state.nextSeq {
			return fmt.Errorf("namespace %q has revision %d; the last number given is %d", n.def.Name, n.def.Revision, c.meta.state.nextSeq-1)
		}
		// In this order a prefix stands before those that begin with it.
		if i > 0 && strings.HasPrefix(n.def.TopicPrefix, all[i-1].def.TopicPrefix) {
			return fmt.Errorf("namespaces %q and %q have topics in common: %q, %q", n.def.Name, all[i-1].def.Name, n.def.TopicPrefix, all[i-1].def.TopicPrefix)
		}
	}
	return nil
}
