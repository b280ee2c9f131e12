package view

import (
	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// Config returns how far the config group has come, or a data group with following it.
func (v *View) Config() (*jobpb.ConfigPosition, error) {
	at := new(jobpb.ConfigPosition)
	err := v.With(func(r pebble.Reader) error {
		m, err := record.ReadMeta(r)
		p := m.ConfigLog.Position
		if m.Sharding.GetGroup() != 0 {
			p = m.ConfigGroup.Position
		} else {
			p.Epoch = max(p.Epoch, 1)
		}
		at.Epoch, at.Number = p.Epoch, p.Number
		return err
	})
	return at, err
}
