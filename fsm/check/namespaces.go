package check

import (
	"fmt"
	"strings"

	"tarry/fsm/internal/record"
)

// checkNamespaces compares what each namespace holds with the sums of its topics, and checks
// that no topic can be in two.
func (c *checker) checkNamespaces() error {
	all, err := record.ReadNamespaces(c.r)
	if err != nil {
		return err
	}
	records := 0
	if err := c.scan(record.SpaceNamespace, func(_, _ []byte) error { records++; return nil }); err != nil {
		return err
	}
	if records != 2*len(all) {
		return fmt.Errorf("%d namespaces have %d records; each has two", len(all), records)
	}
	sums := make([]record.Usage, len(all))
	err = c.scan(record.SpaceTopic, func(key, value []byte) error {
		rec, err := record.DecodeTopic(value)
		if err != nil {
			return err
		}
		name := string(key[1:])
		if i := record.IndexOfPrefix(len(all), name, func(i int) string { return all[i].Def.TopicPrefix }); i >= 0 {
			sums[i].Jobs += rec.Jobs()
			sums[i].Bytes += rec.Bytes
			sums[i].Topics++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, n := range all {
		if n.Usage != sums[i] {
			return fmt.Errorf("namespace %q holds %+v, its record says %+v", n.Def.Name, sums[i], n.Usage)
		}
		// In a data group it is a number of the config group.
		if c.meta.Sharding.GetGroup() == 0 && n.Def.Revision >= c.meta.State.NextSeq {
			return fmt.Errorf("namespace %q has revision %d; the last number given is %d", n.Def.Name, n.Def.Revision, c.meta.State.NextSeq-1)
		}
		// In this order a prefix stands before those that begin with it.
		if i > 0 && strings.HasPrefix(n.Def.TopicPrefix, all[i-1].Def.TopicPrefix) {
			return fmt.Errorf(
				"namespaces %q and %q have topics in common: %q, %q", n.Def.Name, all[i-1].Def.Name, n.Def.TopicPrefix, all[i-1].Def.TopicPrefix)
		}
	}
	return nil
}
