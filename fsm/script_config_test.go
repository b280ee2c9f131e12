package fsm

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// withConfig runs a line of a script of a data group that is about the config group.
func (s *script) withConfig(c command) string {
	switch c.name {
	case "term":
		n, err := parseUint(c.args[0].Key)
		require.NoError(s.t, err, s.pos)
		s.term = n
		return "ok"
	case "config":
		other := s.configGroup()
		other.pos, other.now = s.pos, s.now
		return other.do1(command{name: c.args[0].Key, args: c.args[1:], parts: c.parts})
	case "heard":
		asked := s.now
		if len(c.args) > 0 {
			asked = s.until(c)
		}
		at := s.configGroup().m.ConfigPosition()
		s.heard = oplog.Heard{AskedMS: asked, Epoch: at.Epoch, Number: at.Number}
		return fmt.Sprintf("asked at %s: %d.%d", instantText(asked), at.Epoch, at.Number)
	}
	return s.follow()
}

// configGroup returns the machine of the config group. It is replayed as the script's own is.
func (s *script) configGroup() *script {
	if s.other == nil {
		s.other = &script{rig: newRig(s.t, Options{}), term: 1, pos: s.pos}
		s.other.now = s.now
		s.other.apply(opSetSharding("c", configGroup(4)))
		s.t.Cleanup(func() { s.other.replay(Options{}) })
	}
	return s.other
}

// follow proposes one ConfigLog, as the leader of the data group does.
func (s *script) follow() string {
	config, err := s.configGroup().m.OpenConfig()
	require.NoError(s.t, err, s.pos)
	defer config.Close()
	g := s.m.ConfigGroup()
	op, err := config.For(&g)
	require.NoError(s.t, err, s.pos)
	if op == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%d changes after %d.%d", len(op.Changes), op.Epoch, op.After)
	if p := op.Part; p != nil {
		text = fmt.Sprintf("%d records of %d.%d", len(p.Records), op.Epoch, p.Number)
	}
	r := s.apply(&jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: op}})[0]
	return text + ": " + resultText(r)
}

// configText says how far the machine's group has come.
func (s *script) configText() string {
	if s.m.Group() == 0 {
		at := s.m.ConfigPosition()
		return fmt.Sprintf("decided %d.%d", at.Epoch, at.Number)
	}
	g := s.m.ConfigGroup()
	text := fmt.Sprintf("has %d.%d", g.Epoch, g.Number)
	if g.Heard.Term != 0 {
		text += fmt.Sprintf(", asked at %s in term %d", instantText(g.Heard.AskedMS), g.Heard.Term)
	}
	return text
}

// namespacesText says what each namespace holds.
func (s *script) namespacesText(v *view.View) string {
	var lines []string
	require.NoError(s.t, v.With(func(r pebble.Reader) error {
		all, err := record.ReadNamespaces(r)
		for _, n := range all {
			lines = append(lines, fmt.Sprintf("%s, %s: %d jobs in %d topics", n.Def.Name, n.Def.TopicPrefix, n.Jobs, n.Topics))
		}
		return err
	}), s.pos)
	return orNone(strings.Join(lines, "\n"))
}
