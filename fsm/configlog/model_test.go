package configlog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// The model: what the config group and its data groups have, and what is under way between them.
// What a data group decides is decided by Group, what its leader proposes by Group.Need, and for
// which groups a call waits by Reports: the code of the product. Everything around it is here.
//
// What the model leaves out, and what it joins:
//   - The mode is enforce, and the lease is one tick. Reads, quotas and formats are not there.
//   - A commit and its application are one step. So are: the leader of the config group reads its
//     position, a majority confirms it, it answers.
//   - A question is in the network from the first instant on that has its stamp. Of the answers to
//     one question only the first is kept, and a report is there as soon as its position is applied:
//     a later one permits nothing more.
//   - Entries of a leader that are not committed survive up to any point when the leader changes,
//     with their stamps and their term.
//   - A group that is cut off, or without a majority, is one whose steps do not happen. A state is
//     quiet when everything that happens by itself has happened, as after a partition.
//   - Data groups are alike.
const (
	maxGroups    = 2
	maxCalls     = 3
	maxProposed  = 3 // entries of a data group that are not committed
	maxAnswers   = 3 // that a data leader has not used
	maxChanges   = 4 // of an epoch
	maxEpochs    = 4
	maxTicks     = 8
	parts        = 2 // of a whole config
	leaseOfModel = 1 // ticks
)

// Kinds of changes. A token has a level: 0 none, 1 weak, 2 full. An operation needs a level.
const (
	putToken = 1 + iota
	weakenToken
	revokeToken
	setTopic
)

var changeNames = []string{"", "put token", "weaken token", "revoke token", "set topic"}

func change(level, kind uint8) uint8 {
	switch kind {
	case putToken:
		return 2
	case weakenToken:
		return min(level, 1)
	case revokeToken:
		return 0
	}
	return level
}

// roll adds a change to the hash of those before it.
func roll(sum uint16, kind uint8) uint16 { return sum*5 + uint16(kind) }

// Kinds of entries of a data group.
const (
	entryChanges = 1 + iota
	entryPart
	entryHeard
	entryOp
)

// entry is one of a data group's log, proposed and not committed.
type entry struct {
	kind, own, term uint8
	epoch, from, to uint8             // entryChanges: those after from up to to; entryPart, entryHeard: position to
	what            [maxChanges]uint8 // entryChanges
	part, level     uint8             // entryPart: which, and the token's level; entryOp: the level that it needs
	at, real        uint8             // the stamp, entryHeard: of the question; entryOp: the true time
	sum             uint16            // entryPart, to check
	decided         uint8             // of the variant decidedearly
}

type answer struct{ at, epoch, number uint8 }

// place is a Position in a state, which is as small as possible.
type place struct{ epoch, number uint8 }

func (p place) position() Position  { return Position{uint64(p.epoch), uint64(p.number)} }
func (p place) before(q place) bool { return p.position().Before(q.position()) }

type dataGroup struct {
	// Replicated: a Group, and the config.
	place
	heard, heardTerm uint8 // heard: the instant + 1; 0: never
	loading          place
	next             uint8 // the part that comes next
	level            uint8
	sum              uint16 // to check: which changes were applied, in which order

	log      [maxProposed]entry
	proposed uint8
	term     uint8
	behind   uint8 // the leader's clock

	asked    uint8 // instants (bits) at which it asked
	answers  [maxAnswers]answer
	answered uint8
	reported place // it is there once the group has that
	lost     uint8 // the report was lost, and is sent again some time
	stuck    uint8 // of the variant ownstays
	notified uint8 // of the variant onlynotified
	told     place // to check: what replies to clients said that it has
}

// Phases of a call that changes config.
const (
	callIdle = iota
	callProposed
	callWaits
	callDone
	callLags
	callUnknown
)

type call struct {
	phase uint8
	place
	repeat uint8 // a setting that is there already changes nothing
}

type state struct {
	now         uint8
	config      place // of the config group
	unconfirmed uint8 // a replacement of its state
	tries       uint8
	base        [maxEpochs]uint8 // the level that each epoch began with
	baseSum     [maxEpochs]uint16
	changes     [maxEpochs][maxChanges]uint8
	length      [maxEpochs]uint8
	pending     [maxCalls]uint8 // proposed in the config group: calls, from 1
	pendings    uint8
	deposed     uint8 // a deposed leader still answers (variant oldleader), with
	deposedAt   place
	calls       [maxCalls]call
	groups      [maxGroups]dataGroup
	past        [maxTicks]place // to check: the config group at the end of each tick
	left        budget
}

// budget bounds what happens from outside.
type budget struct {
	configLeaders, leaders, ticks, losses                    uint8
	replacements, recoveries, dataReplacements, dataRecovers uint8
	ops, retries, lagReplies, clockResets                    uint8
}

// model is a configuration, and the wrong variant that is looked for; empty: none.
type model struct {
	name    string
	calls   []uint8
	level   uint8 // at the start
	fresh   bool  // data groups have no config yet
	groups  uint8
	skew    uint8
	compact bool // the changes are not kept
	budget  budget
	wrong   string

	labels  bool
	problem string
}

func (m *model) is(wrong string) bool { return m.wrong == wrong }

func (m *model) bad(format string, a ...any) {
	if m.problem == "" {
		m.problem = fmt.Sprintf(format, a...)
	}
}

func (m *model) start() state {
	s := state{config: place{epoch: 1}, left: m.budget}
	s.base[1], s.baseSum[1] = m.level, 7
	for i := range m.groups {
		g := &s.groups[i]
		if !m.fresh {
			g.place, g.level, g.sum = s.config, m.level, 7
			g.reported = s.config
		}
		g.term, g.asked = 1, 1
		if m.is("onlynotified") {
			g.notified = 1
		}
	}
	return s
}

// at returns the config at a place of the config group's history.
func (s *state) at(p place) (level uint8, sum uint16) {
	level, sum = s.base[p.epoch], s.baseSum[p.epoch]
	for _, kind := range s.changes[p.epoch][:p.number] {
		level, sum = change(level, kind), roll(sum, kind)
	}
	return level, sum
}

// sortGroups brings the data groups into one order, because they are alike.
func (s *state) sortGroups() {
	slices.SortFunc(s.groups[:], func(a, b dataGroup) int { return bytes.Compare(a.bytes(), b.bytes()) })
}

func (g *dataGroup) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(g)), unsafe.Sizeof(*g))
}

func (s *state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "t%d config %d.%d", s.now, s.config.epoch, s.config.number)
	for i, g := range s.groups {
		fmt.Fprintf(&b, "  g%d %d.%d level %d", i+1, g.epoch, g.number, g.level)
		if g.heard > 0 {
			fmt.Fprintf(&b, " heard %d in term %d", g.heard-1, g.heardTerm)
		}
		for _, e := range g.log[:g.proposed] {
			fmt.Fprintf(&b, " [%s]", e.String())
		}
	}
	return b.String()
}

func (e entry) String() string {
	switch e.kind {
	case entryChanges:
		return fmt.Sprintf("changes %d.%d..%d", e.epoch, e.from+1, e.to)
	case entryPart:
		return fmt.Sprintf("part %d of the config %d.%d", e.part+1, e.epoch, e.to)
	case entryHeard:
		return fmt.Sprintf("heard(%d, %d.%d)", e.at, e.epoch, e.to)
	}
	return fmt.Sprintf("an operation of level %d stamped %d", e.level, e.at)
}

// ---- the config group

// decide applies the oldest proposal. seen: the leader that proposed it is there to reply.
func (m *model) decide(s *state, seen bool) {
	i := s.pending[0] - 1
	copy(s.pending[:], s.pending[1:])
	s.pending[maxCalls-1] = 0
	s.pendings--
	kind, c := m.calls[i], &s.calls[i]
	level, _ := s.at(s.config)
	changes := kind == setTopic && c.repeat == 0 || change(level, kind) != level
	if changes {
		s.changes[s.config.epoch][s.config.number] = kind
		s.config.number++
		s.length[s.config.epoch] = s.config.number
		if m.is("onlynotified") {
			for g := range s.groups {
				s.groups[g].notified = 1
			}
		}
	}
	if kind == setTopic {
		c.repeat = 1
	}
	if !seen {
		c.phase = callUnknown
		return
	}
	c.phase, c.place = callWaits, s.config
	if !changes && m.is("repeatatonce") {
		m.reply(s, int(i), nil)
	}
}

// reply answers a call, and names the groups that lag.
func (m *model) reply(s *state, i int, lagging []uint32) {
	c := &s.calls[i]
	c.phase = callDone
	if len(lagging) > 0 {
		c.phase = callLags
	}
	for n := range m.groups {
		if slices.Contains(lagging, uint32(n)+1) {
			continue
		}
		g := &s.groups[n]
		// A group that was recovered, or has parts of a config only, is behind what it reported. It
		// accepts nothing before it has that again.
		if g.before(c.place) && g.heard != 0 && g.epoch != 0 && !m.is("leasefence") {
			m.bad("the reply to %q says that g%d has it, which is at %d.%d, not %d.%d",
				changeNames[m.calls[i]], n+1, g.epoch, g.number, c.epoch, c.number)
		}
		if g.told.before(c.place) {
			g.told = c.place
		}
	}
}

// lagging returns the groups for which a call waits.
func (m *model) lagging(s *state, at place) []uint32 {
	reports := Reports{}
	for i, g := range s.groups[:m.groups] {
		reports.Add(uint32(i)+1, g.reported.position())
	}
	lagging := reports.Lagging(at.position(), uint32(m.groups))
	if m.is("leasefence") { // those that are out of touch for longer than the lease do not count
		lagging = slices.DeleteFunc(lagging, func(n uint32) bool {
			g := s.groups[n-1]
			return g.reported.epoch != 0 && g.heard != 0 && s.now > g.heard-1+leaseOfModel+m.skew
		})
	}
	if m.is("onegroup") && len(lagging) < int(m.groups) {
		return nil
	}
	return lagging
}

// newConfigLeader gives the config group another leader, which has the first keep proposals.
func (m *model) newConfigLeader(s *state, keep int) {
	if m.is("oldleader") {
		s.deposed, s.deposedAt = 1, s.config
	}
	for _, i := range s.pending[:s.pendings] {
		s.calls[i-1].phase = callUnknown
	}
	for ; s.pendings > 0 && keep > 0; keep-- {
		m.decide(s, false)
	}
	s.pending, s.pendings = [maxCalls]uint8{}, 0
	s.unconfirmed = 0 // it is lost with its leader
}

// newEpoch makes the config group continue from another state.
func (s *state) newEpoch(level uint8) {
	s.config = place{epoch: s.config.epoch + 1}
	s.tries++
	e := s.config.epoch
	s.base[e], s.baseSum[e] = level, 1000*uint16(s.tries)
	s.changes[e], s.length[e] = [maxChanges]uint8{}, 0
}

// ---- steps

// next is what a step leads to.
type next struct {
	state   state
	inner   bool // it happens by itself
	problem string
	label   string
}

// step adds what do leads to.
type step func(inner bool, do func(*state), format string, a ...any)

// successors returns everything that can happen in a state.
func (m *model) successors(s *state, out []next) []next {
	out = out[:0]
	add := func(inner bool, do func(*state), format string, a ...any) {
		m.problem = ""
		out = append(out, next{state: *s, inner: inner})
		n := &out[len(out)-1]
		do(&n.state)
		for i := range m.groups {
			m.tidy(&n.state, &n.state.groups[i])
		}
		if m.problem == "" {
			m.problem = m.invariant(&n.state)
		}
		n.problem = m.problem
		if n.state == *s && n.problem == "" {
			out = out[:len(out)-1] // nothing happened
			return
		}
		if m.labels {
			n.label = fmt.Sprintf(format, a...)
		}
	}
	m.callSteps(s, add)
	m.configSteps(s, add)
	for i := range m.groups {
		m.groupSteps(s, int(i), add)
	}
	return out
}

func (m *model) callSteps(s *state, add step) {
	for i, kind := range m.calls {
		c := s.calls[i]
		again := (c.phase == callUnknown || c.phase == callLags) && s.left.retries > 0
		if (c.phase == callIdle || again) && s.unconfirmed == 0 && s.config.number+s.pendings < maxChanges {
			add(false, func(t *state) {
				if c.phase != callIdle {
					t.left.retries--
				}
				t.calls[i].phase = callProposed
				t.pending[t.pendings] = uint8(i + 1)
				t.pendings++
			}, "call: %s", changeNames[kind])
		}
		if c.phase != callWaits {
			continue
		}
		if lagging := m.lagging(s, c.place); len(lagging) == 0 {
			add(true, func(t *state) { m.reply(t, i, nil) }, "reply: %s is in force everywhere", changeNames[kind])
		} else if s.left.lagReplies > 0 {
			add(false, func(t *state) { t.left.lagReplies--; m.reply(t, i, lagging) }, "reply: %s, lagging: %v", changeNames[kind], lagging)
		}
	}
}

func (m *model) configSteps(s *state, add step) {
	if s.pendings > 0 && s.unconfirmed == 0 {
		add(true, func(t *state) { m.decide(t, true) }, "the config group commits %q", changeNames[m.calls[s.pending[0]-1]])
	}
	if s.left.configLeaders > 0 {
		for keep := 0; keep <= int(s.pendings); keep++ {
			add(false, func(t *state) { t.left.configLeaders--; m.newConfigLeader(t, keep) },
				"the config group gets another leader; %d of %d proposals are committed unseen", keep, s.pendings)
		}
	}
	if s.left.replacements > 0 && s.pendings == 0 && s.unconfirmed == 0 && s.config.epoch+1 < maxEpochs {
		add(false, func(t *state) { t.left.replacements--; t.unconfirmed = 1; t.tries++ },
			"the config group's state is replaced on its leader, not confirmed")
	}
	if s.unconfirmed == 1 {
		add(true, func(t *state) {
			level, _ := t.at(t.config) // its tokens stay
			t.unconfirmed = 0
			t.tries--
			t.newEpoch(level)
		}, "the replacement of the config group's state is confirmed: epoch %d", s.config.epoch+1)
	}
	if s.left.recoveries > 0 && s.unconfirmed == 0 && s.config.epoch+1 < maxEpochs {
		add(false, func(t *state) {
			t.left.recoveries--
			m.newConfigLeader(t, 0)
			t.newEpoch(m.level) // its tokens are those of the backup
			for g := range t.groups {
				t.groups[g].told = place{} // an operator has taken it back
			}
			for i := range t.calls {
				if t.calls[i].phase == callWaits {
					t.calls[i].phase = callUnknown
				}
			}
		}, "the config group is recovered from an older backup: epoch %d", s.config.epoch+1)
	}
	if s.left.ticks > 0 {
		add(false, func(t *state) {
			t.left.ticks--
			t.past[t.now] = t.config
			t.now++
		}, "time is %d", s.now+1)
	}
}

// ---- what must hold

// invariant returns what is wrong in a state: a group has exactly the changes of its position, in
// their order, each once.
func (m *model) invariant(s *state) string {
	for i, g := range s.groups[:m.groups] {
		if g.epoch == 0 {
			continue
		}
		if g.epoch > s.config.epoch || g.number > s.length[g.epoch] {
			return fmt.Sprintf("g%d is at %d.%d, and the config group never decided that", i+1, g.epoch, g.number)
		}
		if level, sum := s.at(g.place); level != g.level || sum != g.sum {
			return fmt.Sprintf("g%d is at %d.%d and has other changes than the config group decided", i+1, g.epoch, g.number)
		}
	}
	return ""
}

// stuck returns what is wrong in a state in which nothing happens by itself any more.
func (m *model) stuck(s *state) string {
	for i := range s.groups[:m.groups] {
		g := &s.groups[i]
		if g.place != s.config {
			return fmt.Sprintf("g%d stays at %d.%d; the config group is at %d.%d", i+1, g.epoch, g.number, s.config.epoch, s.config.number)
		}
		if replicated := g.replicated(); !replicated.Accepts(uint64(g.term), ms(s.stamp(g))) {
			return fmt.Sprintf("g%d stays out of touch", i+1)
		}
	}
	for i, c := range s.calls {
		if c.phase == callProposed || c.phase == callWaits {
			return fmt.Sprintf("the call %q is never answered", changeNames[m.calls[i]])
		}
	}
	return ""
}
