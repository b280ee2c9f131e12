package fsm

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/configlog"
	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// In a cluster with several shards the config group records each change of the config: the records
// that an operation wrote, so that data groups come to the same config without deciding anything
// (config_group.go). With one shard nothing is recorded.

const (
	// keptChanges and keptChangeBytes bound the changes that are kept. A group that lacks older ones
	// gets the whole config.
	keptChanges     = 4096
	keptChangeBytes = 4 << 20
	// configLogBytes bounds the records of a ConfigLog, except for a single change.
	configLogBytes = 512 << 10
)

// logsConfig reports whether changes of the config are recorded.
func (m *Machine) logsConfig() bool { return m.meta.Sharding != nil && m.meta.Sharding.Group == 0 }

// setConfig writes a record of the config; nil: deletes it.
func (x *tx) setConfig(key, value []byte) {
	if value == nil {
		must(x.batch.Delete(key, nil))
	} else {
		must(x.batch.Set(key, value, nil))
	}
	if x.m.logsConfig() {
		c := x.configChange()
		c.Records = append(c.Records, &jobpb.ConfigRecord{Key: bytes.Clone(key), Value: bytes.Clone(value)})
	}
}

// versionRaised records that the cluster version was.
func (x *tx) versionRaised() {
	if x.m.logsConfig() {
		x.configChange().Version = x.m.meta.Version
	}
}

func (x *tx) configChange() *jobpb.ConfigChange {
	if x.change == nil {
		x.change = new(jobpb.ConfigChange)
	}
	return x.change
}

// logChange records the change that the operation has made.
func (x *tx) logChange() error {
	encoded, err := x.change.MarshalVT()
	x.change = nil
	if err != nil {
		return err
	}
	l := &x.m.meta.ConfigLog
	l.Epoch = max(l.Epoch, 1)
	l.Number++
	must(x.batch.Set(x.seqKey(record.SpaceConfigLog, l.Number), encoded, nil))
	x.m.changeBytes = append(x.m.changeBytes, len(encoded))
	total := 0
	for _, n := range x.m.changeBytes {
		total += n
	}
	for len(x.m.changeBytes) > keptChanges || total > keptChangeBytes {
		total -= x.m.changeBytes[0]
		x.m.changeBytes = x.m.changeBytes[1:]
		l.Kept++
		must(x.batch.Delete(x.seqKey(record.SpaceConfigLog, l.Kept), nil))
	}
	x.saveConfigLog()
	return nil
}

func (x *tx) saveConfigLog() {
	x.value = x.m.meta.ConfigLog.Append(x.value[:0])
	must(x.batch.Set(record.KeyConfigLog, x.value, nil))
	x.configChanged = true
}

// beginConfigHistory makes the config that the state has, which may be older than what data groups have,
// the first of a new epoch. A data group is out of touch: it may lack what was confirmed.
func (x *tx) beginConfigHistory() {
	switch {
	case x.m.logsConfig():
		must(x.batch.DeleteRange([]byte{record.SpaceConfigLog}, []byte{record.SpaceConfigLog + 1}, nil))
		x.m.changeBytes = nil
		x.m.meta.ConfigLog = record.ConfigLog{Position: configlog.Position{Epoch: max(x.m.meta.ConfigLog.Epoch, 1) + 1}}
		x.saveConfigLog()
	case x.m.followsConfig():
		x.outOfTouch()
	}
}

// readChangeBytes returns how large the changes are that are kept.
func readChangeBytes(r pebble.Reader) (all []int, err error) {
	err = record.EachConfigChange(r, 0, func(_ uint64, encoded []byte) (bool, error) {
		all = append(all, len(encoded))
		return true, nil
	})
	return all, err
}

// publishConfig is called with m.mu held.
func (m *Machine) publishConfig() {
	m.public.configLog, m.public.configGroup = m.meta.ConfigLog, m.meta.ConfigGroup
	if m.configNews != nil {
		close(m.configNews)
	}
	m.configNews = make(chan struct{})
}

// ConfigChanged returns a channel that is closed when ConfigPosition or ConfigGroup may return something
// else. To miss no change, call it first.
func (m *Machine) ConfigChanged() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.configNews
}

// ConfigPosition returns how far the config group has come, as of the last commit.
func (m *Machine) ConfigPosition() configlog.Position {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return positionOf(&m.public.configLog)
}

// positionOf returns the position of a config log: its first epoch has no record before the first change.
func positionOf(l *record.ConfigLog) configlog.Position {
	return configlog.Position{Epoch: max(l.Epoch, 1), Number: l.Number}
}

// Config is the config as of one commit of the config group, for data groups. Close it.
type Config struct {
	view    *view.View
	log     record.ConfigLog
	version uint32
}

// errNoConfigGroup is the error of a replica that is behind the entry that made the group what it is.
var errNoConfigGroup = errors.New("this node's replica of the config group does not know yet that it is one")

// OpenConfig opens the config of a config group.
func (m *Machine) OpenConfig() (*Config, error) {
	c := &Config{view: m.View()}
	err := c.view.With(func(r pebble.Reader) error {
		meta, err := record.ReadMeta(r)
		c.log, c.version = meta.ConfigLog, meta.Version
		if err == nil && meta.Sharding == nil {
			err = errNoConfigGroup
		}
		return err
	})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the reads.
func (c *Config) Close() error { return c.view.Close() }

// For returns what a data group lacks next; nil: nothing.
func (c *Config) For(g *configlog.Group) (*jobpb.ConfigLog, error) {
	at := positionOf(&c.log)
	need, next := g.Need(at, c.log.Kept)
	op := &jobpb.ConfigLog{Epoch: at.Epoch}
	var err error
	switch need {
	case configlog.Nothing:
		return nil, nil
	case configlog.Changes:
		op.After = g.Number
		op.Changes, err = c.changes(g.Number)
	case configlog.Whole:
		op.Part, err = c.part(next)
	}
	return op, err
}

func (c *Config) changes(after uint64) (changes []*jobpb.ConfigChange, err error) {
	total := 0
	err = c.view.With(func(r pebble.Reader) error {
		return record.EachConfigChange(r, after, func(_ uint64, encoded []byte) (bool, error) {
			change := new(jobpb.ConfigChange)
			if err := change.UnmarshalVTUnsafe(bytes.Clone(encoded)); err != nil {
				return false, err
			}
			changes = append(changes, change)
			total += len(encoded)
			return total < configLogBytes, nil
		})
	})
	return changes, err
}

func (c *Config) part(from string) (*jobpb.ConfigPart, error) {
	p := &jobpb.ConfigPart{Number: c.log.Number, From: []byte(from), Version: c.version}
	total := 0
	err := c.view.With(func(r pebble.Reader) error {
		return record.EachConfigRecord(r, from, func(rec *jobpb.ConfigRecord) bool {
			if total += len(rec.Key) + len(rec.Value); total > configLogBytes && len(p.Records) > 0 {
				p.Next = rec.Key
				return false
			}
			p.Records = append(p.Records, rec)
			return true
		})
	})
	return p, err
}
