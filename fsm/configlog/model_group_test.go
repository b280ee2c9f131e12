package configlog

import (
	"cmp"
	"slices"
	"strconv"
)

// A data group of the model.

// ms returns the instant of a tick: a lease lasts leaseOfModel ticks.
func ms(tick uint8) int64 { return int64(tick) * LeaseMS / leaseOfModel }

func partName(part uint8) string {
	if part == 0 || part == parts {
		return "" // the first; the last has no next
	}
	return strconv.Itoa(int(part))
}

func partNumber(name string) uint8 {
	n, _ := strconv.Atoi(name)
	return uint8(n)
}

// replicated returns what the group replicates of the protocol.
func (g *dataGroup) replicated() Group {
	r := Group{Position: g.position(), Loading: Loading{At: g.loading.position(), Next: partName(g.next)}}
	if g.heard != 0 {
		r.Heard = Heard{Term: uint64(g.heardTerm), AskedMS: ms(g.heard - 1)}
	}
	return r
}

// replicate is the reverse.
func (g *dataGroup) replicate(r Group) {
	g.place = place{uint8(r.Epoch), uint8(r.Number)}
	g.loading, g.next = place{uint8(r.Loading.At.Epoch), uint8(r.Loading.At.Number)}, partNumber(r.Loading.Next)
	g.heard, g.heardTerm = 0, 0
	if r.Heard.Term != 0 {
		g.heard, g.heardTerm = uint8(r.Heard.AskedMS*leaseOfModel/LeaseMS)+1, uint8(r.Heard.Term)
	}
}

// stamp returns the time by the clock of the group's leader.
func (s *state) stamp(g *dataGroup) uint8 { return s.now + 2 - g.behind } // not before 0

func (g *dataGroup) push(e entry) {
	e.term = g.term
	g.log[g.proposed] = e
	g.proposed++
}

// commit applies the oldest entry.
func (m *model) commit(s *state, i int) {
	g := &s.groups[i]
	e := g.log[0]
	copy(g.log[:], g.log[1:])
	g.log[maxProposed-1] = entry{}
	g.proposed--
	r := g.replicated()
	at := Position{uint64(e.epoch), uint64(e.to)}
	switch e.kind {
	case entryChanges:
		skip, ok := r.Changes(Position{uint64(e.epoch), uint64(e.from)}, int(e.to-e.from))
		switch {
		case m.is("nocompare") && e.epoch == g.epoch, m.is("epochignored"):
			skip, ok, r.Position = 0, true, at
		}
		if !ok {
			return
		}
		for _, kind := range e.what[skip : e.to-e.from] {
			g.level, g.sum = change(g.level, kind), roll(g.sum, kind)
		}
	case entryPart:
		p := Part{At: at, From: partName(e.part), Next: partName(e.part + 1)}
		taken := r.Part(p)
		switch {
		case m.is("oldepoch") && e.part == 0:
			taken, r.Position, r.Loading = true, Position{}, Loading{At: at, Next: p.Next}
		case m.is("mixedparts") && e.part == 1 && r.Loading.At.Epoch != 0:
			taken, r.Position, r.Loading = true, at, Loading{}
		}
		if !taken {
			return
		}
		if e.part == 0 {
			g.level = e.level
		} else {
			g.sum = e.sum
		}
		if m.is("partinforce") && e.part == 0 {
			r.Position = at
		}
	case entryHeard:
		before := r.Before(at)
		h := Heard{Term: uint64(e.term), AskedMS: ms(e.at)}
		if !r.Hear(h, at) && before && m.is("heardbehind") {
			r.Heard = h
		}
	case entryOp:
		m.decideOp(s, i, e, &r)
	}
	g.replicate(r)
}

// decideOp decides an operation of a client, and checks what is accepted.
func (m *model) decideOp(s *state, i int, e entry, r *Group) {
	g := &s.groups[i]
	ok := r.Accepts(uint64(e.term), ms(e.at))
	switch {
	case m.is("nolease"):
		ok = g.epoch != 0
	case m.is("anyterm"):
		ok = g.epoch != 0 && g.heard != 0 && r.Accepts(r.Heard.Term, ms(e.at))
	}
	ok = ok && g.level >= e.level
	if m.is("failopen") && g.epoch == 0 {
		ok = true // the mode of a state without config is off
	}
	if m.is("decidedearly") {
		ok = e.decided == 1
	}
	if !ok {
		return
	}
	if e.level > g.level || g.epoch == 0 {
		m.bad("g%d accepts an operation of level %d, and the token has level %d at its position %d.%d", i+1, e.level, g.level, g.epoch, g.number)
	}
	if g.before(g.told) {
		m.bad("g%d accepts an operation at %d.%d, and a reply said that %d.%d is in force there", i+1, g.epoch, g.number, g.told.epoch, g.told.number)
	}
	if back := int(e.real) - leaseOfModel - 1; back >= 0 && g.before(s.past[back]) {
		m.bad("g%d at %d.%d accepts an operation of tick %d; the config group was at %d.%d at the end of tick %d already",
			i+1, g.epoch, g.number, e.real, s.past[back].epoch, s.past[back].number, back)
	}
}

// newLeader gives a data group another leader, which has the first keep entries of the old one.
func (m *model) newLeader(g *dataGroup, keep int, behind uint8) {
	if m.is("ownstays") && keep < int(g.proposed) {
		g.stuck = 1 // thinks that a proposal is still under way
	}
	for i := range g.log {
		if i >= keep {
			g.log[i] = entry{}
		} else if !m.is("ownstays") {
			g.log[i].own = 0
		}
	}
	g.proposed, g.behind = uint8(keep), behind
	g.term++
	m.newLeadership(g)
	g.notified = 0
}

// newLeadership forgets what the leader knew in memory. Questions may still be in the network, and
// do not count.
func (m *model) newLeadership(g *dataGroup) {
	if !m.is("oldanswer") {
		g.asked, g.answered, g.answers = 0, 0, [maxAnswers]answer{}
	}
}

func (g *dataGroup) proposes(kinds ...uint8) bool {
	for _, e := range g.log[:g.proposed] {
		if e.own == 1 && slices.Contains(kinds, e.kind) {
			return true
		}
	}
	return false
}

// tidy adds what is sent at once, and drops what cannot have an effect any more.
func (m *model) tidy(s *state, g *dataGroup) {
	if stamp := s.stamp(g); stamp < maxTicks {
		g.asked |= 1 << stamp
	}
	has := g.place
	if m.is("reportproposed") {
		for _, e := range g.log[:g.proposed] {
			if p := (place{e.epoch, e.to}); (e.kind == entryChanges || e.kind == entryPart) && has.before(p) {
				has = p
			}
		}
	}
	if g.reported.before(has) && g.lost == 0 {
		g.reported = has
	}
	if m.is("heardonarrival") {
		return
	}
	var heard uint8
	if g.heardTerm == g.term {
		heard = g.heard
	}
	kept := slices.DeleteFunc(g.answers[:g.answered], func(a answer) bool { return a.at+1 <= heard })
	slices.SortFunc(kept, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.number, b.number))
	})
	g.answered = uint8(len(kept))
	g.asked &^= 1<<heard - 1
}

func (m *model) groupSteps(s *state, i int, add step) {
	g := &s.groups[i]
	if g.proposed > 0 {
		add(true, func(t *state) { m.commit(t, i) }, "g%d commits %s", i+1, g.log[0].String())
	}
	m.followSteps(s, i, add)
	m.touchSteps(s, i, add)
	m.clientSteps(s, i, add)
	m.faultSteps(s, i, add)
}

// followSteps: the leader reads a replica of the config group that may be behind, even an epoch.
func (m *model) followSteps(s *state, i int, add step) {
	g := &s.groups[i]
	if g.proposed >= maxProposed || g.proposes(entryChanges, entryPart) || m.is("ownstays") && g.stuck == 1 ||
		m.is("onlynotified") && g.notified == 0 {
		return
	}
	r := g.replicated()
	for epoch := uint8(1); epoch <= s.config.epoch; epoch++ {
		for number := uint8(0); number <= s.length[epoch]; number++ {
			replica := place{epoch, number}
			inner := replica == s.config
			kept := uint64(0)
			if m.compact {
				kept = uint64(number)
			}
			need, from := r.Need(replica.position(), kept)
			if m.is("epochignored") && g.epoch != 0 && epoch != g.epoch && number > g.number {
				need = Changes
			} else if m.is("epochignored") && epoch != g.epoch && g.epoch != 0 {
				need = Nothing
			}
			if m.is("oldepoch") && g.epoch != 0 && epoch < g.epoch {
				need, from = Whole, ""
			}
			level, sum := s.at(replica)
			var e entry
			switch need {
			case Nothing:
				continue
			case Changes:
				e = entry{kind: entryChanges, own: 1, epoch: epoch, from: g.number, to: number}
				copy(e.what[:], s.changes[epoch][g.number:number])
			case Whole:
				e = entry{kind: entryPart, own: 1, epoch: epoch, to: number, part: partNumber(from), level: level, sum: sum}
			}
			add(inner, func(t *state) {
				t.groups[i].push(e)
				if inner && (e.kind != entryPart || e.part == parts-1) {
					t.groups[i].notified = 0
				}
			}, "g%d's leader reads %d.%d from a replica of the config group and proposes %s", i+1, epoch, number, e.String())
		}
	}
	if m.is("uncommitted") && s.pendings > 0 && g.place == s.config {
		e := entry{kind: entryChanges, own: 1, epoch: g.epoch, from: g.number, to: g.number + 1}
		e.what[0] = m.calls[s.pending[0]-1]
		add(false, func(t *state) { t.groups[i].push(e) }, "g%d's leader proposes a change that the config group has not committed", i+1)
	}
	if m.is("unconfirmed") && s.unconfirmed == 1 && g.epoch <= s.config.epoch {
		e := entry{kind: entryPart, own: 1, epoch: s.config.epoch + 1, level: s.base[s.config.epoch], sum: 1000 * uint16(s.tries)}
		if e.epoch == g.loading.epoch {
			e.part = g.next
		}
		add(false, func(t *state) { t.groups[i].push(e) }, "g%d's leader reads the replaced state that is not confirmed and proposes %s", i+1, e.String())
	}
}

// touchSteps: the leader asks the config group's, and records what it hears.
func (m *model) touchSteps(s *state, i int, add step) {
	g := &s.groups[i]
	for at := range uint8(maxTicks) {
		if g.asked>>at&1 == 0 || g.answered >= maxAnswers {
			continue
		}
		reply := func(inner bool, p place, who string) {
			for _, a := range g.answers[:g.answered] {
				if a.at == at && !p.before(place{a.epoch, a.number}) {
					return // what a later answer permits, the earlier one does
				}
			}
			add(inner, func(t *state) {
				to := &t.groups[i]
				to.answers[to.answered] = answer{at, p.epoch, p.number}
				to.answered++
			}, "%s answers g%d's question of %d: %d.%d", who, i+1, at, p.epoch, p.number)
		}
		if s.unconfirmed == 0 {
			reply(true, s.config, "the config group's leader, confirmed,")
		}
		if s.deposed == 1 {
			reply(false, s.deposedAt, "a deposed leader of the config group")
		}
	}
	for _, a := range g.answers[:g.answered] {
		p := place{a.epoch, a.number}
		if g.proposed >= maxProposed || g.before(p) && !m.is("heardbehind") || g.proposes(entryHeard) {
			continue
		}
		e := entry{kind: entryHeard, own: 1, epoch: a.epoch, to: a.number, at: a.at}
		if m.is("heardonarrival") {
			if e.at = s.stamp(g); g.heard != 0 && g.heard-1 >= e.at {
				continue
			}
		}
		add(true, func(t *state) { t.groups[i].push(e) }, "g%d's leader proposes %s", i+1, e.String())
	}
	if g.lost == 1 && !m.is("reportonce") {
		add(true, func(t *state) { t.groups[i].lost = 0 }, "g%d reports again that it has %d.%d", i+1, g.epoch, g.number)
	}
}

func (m *model) clientSteps(s *state, i int, add step) {
	g := &s.groups[i]
	if s.left.ops == 0 || g.proposed >= maxProposed {
		return
	}
	r := g.replicated()
	for level := uint8(1); level <= 2; level++ {
		e := entry{kind: entryOp, level: level, at: s.stamp(g), real: s.now}
		if m.is("decidedearly") && g.level >= level && r.Accepts(uint64(g.term), ms(e.at)) {
			e.decided = 1
		}
		add(false, func(t *state) { t.left.ops--; t.groups[i].push(e) },
			"an operation of the token that needs level %d is proposed at g%d, stamped %d", level, i+1, e.at)
	}
}

func (m *model) faultSteps(s *state, i int, add step) {
	g := &s.groups[i]
	if s.left.leaders > 0 {
		for keep := 0; keep <= int(g.proposed); keep++ {
			for behind := uint8(0); behind <= m.skew; behind++ {
				add(false, func(t *state) { t.left.leaders--; m.newLeader(&t.groups[i], keep, behind) },
					"g%d gets another leader, with %d of %d entries; its clock is %d behind", i+1, keep, g.proposed, behind)
			}
		}
	}
	if s.left.losses > 0 {
		for n := range g.answers[:g.answered] {
			add(false, func(t *state) {
				t.left.losses--
				from := &t.groups[i]
				from.answered = uint8(len(slices.Delete(from.answers[:from.answered], n, n+1)))
			}, "an answer to g%d is lost", i+1)
		}
		if g.reported.epoch != 0 && !g.before(g.reported) {
			add(false, func(t *state) { t.left.losses--; t.groups[i].reported, t.groups[i].lost = place{}, 1 }, "reports of g%d are lost", i+1)
		}
	}
	if s.left.dataReplacements > 0 {
		for keep := 0; keep <= int(g.proposed); keep++ {
			add(false, func(t *state) { t.left.dataReplacements--; m.replaceJobs(t, i, keep) },
				"g%d's jobs are replaced by a backup; %d entries were committed before", i+1, keep)
		}
	}
	if s.left.dataRecovers > 0 && g.epoch != 0 {
		for number := uint8(0); number < max(1, g.number); number++ {
			add(false, func(t *state) { t.left.dataRecovers--; m.recover(t, i, number) }, "g%d is recovered from a backup of %d.%d", i+1, g.epoch, number)
		}
	}
	if s.left.clockResets > 0 && s.now > 0 {
		add(false, func(t *state) {
			t.left.clockResets--
			back := &t.groups[i]
			back.log, back.proposed = [maxProposed]entry{}, 0
			back.behind = min(t.now, 2)
			if !m.is("clockback") {
				back.outOfTouch()
				m.newLeadership(back)
			}
		}, "the clock of g%d is set back by 2", i+1)
	}
}

func (g *dataGroup) outOfTouch() {
	r := g.replicated()
	r.OutOfTouch()
	g.replicate(r)
}

// replaceJobs: a backup replaces the jobs of a group. Its config stays.
func (m *model) replaceJobs(s *state, i, keep int) {
	for range keep {
		m.commit(s, i)
	}
	g := &s.groups[i]
	g.log, g.proposed = [maxProposed]entry{}, 0
	m.newLeadership(g)
	if m.is("replaceconfig") {
		g.place = place{epoch: 1}
		g.level, g.sum = s.at(g.place)
	}
}

// recover: a group that lost its majority continues from an older state.
func (m *model) recover(s *state, i int, number uint8) {
	g := &s.groups[i]
	g.log, g.proposed = [maxProposed]entry{}, 0
	if !m.is("leasekept") {
		g.outOfTouch()
	}
	m.newLeadership(g)
	g.number = min(number, g.number)
	g.level, g.sum = s.at(g.place)
}
