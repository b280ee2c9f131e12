package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

const (
	// maxAheadMS is how far ahead of its instant an AdvanceAt may be committed. When the
	// term changes it takes effect at once, so this bounds how far the clock moves then.
	maxAheadMS = 100
	// maxPending bounds those that wait for their instants.
	maxPending = 64
)

// Effect is that of an AdvanceAt.
type Effect struct {
	Number uint64 // the operation's
	// Results are those of its Reserves; nil if there are no replies, or if it was dropped
	// because the clock was set back.
	Results []*jobpb.Result
}

// advanceAt keeps an AdvanceAt until its instant; one that comes late takes effect at once.
func (x *tx) advanceAt(op *jobpb.AdvanceAt, r *jobpb.Result) error {
	meta := &x.m.meta
	switch {
	case x.ops.ClockEpoch() != meta.Reset.Epoch:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since this was proposed")
	case op.AtMs <= x.clock():
		return x.advanceNow(op, x.term, x.nowMS)
	case op.AtMs > x.clock()+maxAheadMS:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "its instant is more than %d ms ahead of the clock", maxAheadMS)
	case len(meta.Pending) >= maxPending:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "%d wait for their instants already", maxPending)
	}
	// What it becomes when it is decoded must not alias the entry.
	encoded, err := op.MarshalVT()
	if err != nil {
		return err
	}
	p := record.PendingAdvance{At: op.AtMs, Term: x.term, Op: encoded}
	at, _ := slices.BinarySearchFunc(meta.Pending, p.At+1, func(q record.PendingAdvance, instant int64) int { return cmp.Compare(q.At, instant) })
	meta.Pending = slices.Insert(meta.Pending, at, p)
	x.pendingChanged = true
	return nil
}

// advanceNow lets an AdvanceAt of an entry with this term take effect at the present clock, which is
// atMS by that of the entry's leader.
func (x *tx) advanceNow(op *jobpb.AdvanceAt, term uint64, atMS int64) error {
	if err := x.advance(op.Advance, new(jobpb.Result)); err != nil {
		return err
	}
	effect := Effect{Number: op.Number}
	for _, reserve := range op.Reserves {
		r := new(jobpb.Result)
		if err := x.reserveAhead(reserve, term, atMS, r); err != nil {
			return err
		}
		if x.replies {
			effect.Results = append(effect.Results, r)
		}
	}
	x.effects = append(x.effects, effect)
	return nil
}

// isDue reports whether p takes effect before an entry with this time.
func (x *tx) isDue(p record.PendingAdvance, e Entry, nowMS int64) bool {
	switch {
	case e.Configuration:
		return false
	case e.Term != p.Term:
		return true
	}
	return x.ops.ClockEpoch() == x.m.meta.Reset.Epoch && p.At <= nowMS
}

// takeEffects lets the first pending advances take effect, as long as they are due, each as
// an entry of its own would.
func (m *Machine) takeEffects(changes *Changes, changed map[string]int, due func(record.PendingAdvance) bool) error {
	x, meta := m.tx, &m.meta
	for len(meta.Pending) > 0 && due(meta.Pending[0]) {
		p := meta.Pending[0]
		meta.Pending = slices.Delete(meta.Pending, 0, 1)
		x.pendingChanged = true
		meta.State.ClockMS, x.roundedDown = max(meta.State.ClockMS, p.At), false
		var op jobpb.AdvanceAt
		if err := op.UnmarshalVTUnsafe(p.Op); err != nil {
			return fmt.Errorf("an advance for %d: %w", p.At, err)
		}
		if err := x.advanceNow(&op, p.Term, p.At); err != nil {
			return fmt.Errorf("an advance for %d: %w", p.At, err)
		}
		if err := x.gatherDueChanges(); err != nil {
			return err
		}
		if x.mustCommit() {
			if err := m.commit(changes, changed); err != nil {
				return err
			}
		}
	}
	return nil
}

// effectsBefore lets what is due before an entry take effect. It returns an error if this node, as
// the leader, has let an effect happen that the other nodes have after the entry.
func (m *Machine) effectsBefore(e Entry, nowMS int64, changes *Changes, changed map[string]int) error {
	x, taken := m.tx, m.meta.Taken
	if taken.At != 0 && !e.Configuration {
		if !x.isDue(taken, e, nowMS) {
			return fmt.Errorf("%w: the entry has the time %d, and the advance for %d came before it here", errOrder, nowMS, taken.At)
		}
		x.dropTaken()
	}
	return m.takeEffects(changes, changed, func(p record.PendingAdvance) bool { return x.isDue(p, e, nowMS) })
}

// errOrder: going on would make the state differ from that of the other nodes.
var errOrder = errors.New(
	"an advance that was committed ahead took effect too early on this node: start it again; if that fails for the same reason, and the other nodes are a majority and run, move its data directory away and keep it, and start it with --join")

// TakeEffect lets what this leader has committed ahead for instants up to untilMS take
// effect. The caller leads in the term, its clock has reached untilMS in the epoch, and
// every entry of the term with an earlier time is applied: whatever is applied next, it
// takes effect before that on all nodes. If an entry follows for which that is wrong, Apply fails
// with it, also after a restart. Otherwise TakeEffect is like Apply.
func (m *Machine) TakeEffect(untilMS int64, term, epoch uint64) (Changes, error) {
	if m.broken != nil {
		return Changes{}, m.broken
	}
	var changes Changes
	if m.meta.Reset.Epoch == epoch && !m.follows() { // a standby's follow the primary's entries
		m.tx.replies = true
		m.tx.noteTaken(untilMS, term)
		changed := make(map[string]int)
		err := m.takeEffects(&changes, changed, func(p record.PendingAdvance) bool { return p.At <= untilMS && p.Term == term })
		if err == nil && m.tx.pendingChanged {
			err = m.commit(&changes, changed)
		}
		if err != nil {
			m.broken = fmt.Errorf("the state machine stopped: %w", err)
			return Changes{}, m.broken
		}
	}
	changes.NextDue = m.NextDue()
	return changes, nil
}

// noteTaken records which effects this leader lets happen now, in the batch that has them: none of
// them comes without it after a restart. The next entry of operations removes the record.
func (x *tx) noteTaken(untilMS int64, term uint64) {
	meta, last := &x.m.meta, int64(0)
	for _, p := range meta.Pending {
		if p.At <= untilMS && p.Term == term {
			last = p.At
		}
	}
	if last != 0 {
		meta.Taken = record.PendingAdvance{At: last, Term: term}
		x.value = meta.Taken.AppendTaken(x.value[:0])
		must(x.batch.Set(record.KeyTaken, x.value, nil))
	}
}

func (x *tx) dropTaken() {
	if x.m.meta.Taken.At != 0 {
		x.m.meta.Taken = record.PendingAdvance{}
		must(x.batch.Delete(record.KeyTaken, nil))
	}
}

// NextEffect returns the instant, in Unix milliseconds, at which the next AdvanceAt takes
// effect; 0: there is none, or they follow the primary's entries.
func (m *Machine) NextEffect() int64 { return m.nextEffect.Load() }

// LastEffect returns the instant of the last one; 0: there is none.
func (m *Machine) LastEffect() int64 { return m.lastEffect.Load() }

// EffectTerm returns the term of the entry of the last one; 0: there is none.
func (m *Machine) EffectTerm() uint64 { return m.effectTerm.Load() }

// storeEffects publishes the instants.
func (m *Machine) storeEffects() {
	var next, last int64
	var term uint64
	if pending := m.meta.Pending; len(pending) > 0 && !m.follows() {
		end := pending[len(pending)-1]
		next, last, term = pending[0].At, end.At, end.Term
	}
	m.effectTerm.Store(term)
	m.nextEffect.Store(next)
	m.lastEffect.Store(last)
}

// dropPending drops what waits for an instant of a clock that was set back, or of an old
// cluster.
func (x *tx) dropPending() {
	x.dropTaken()
	for _, p := range x.m.meta.Pending {
		var op jobpb.AdvanceAt
		must(op.UnmarshalVTUnsafe(p.Op))
		x.effects = append(x.effects, Effect{Number: op.Number})
	}
	if len(x.m.meta.Pending) > 0 {
		x.m.meta.Pending, x.pendingChanged = nil, true
	}
}

func (x *tx) writePending() {
	switch pending := x.m.meta.Pending; {
	case !x.pendingChanged:
	case len(pending) == 0:
		must(x.batch.Delete(record.KeyPending, nil))
	default:
		x.value = record.AppendPending(x.value[:0], pending)
		must(x.batch.Set(record.KeyPending, x.value, nil))
	}
}
