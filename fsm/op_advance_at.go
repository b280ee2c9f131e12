package fsm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"tarry/job/jobpb"
)

const (
	// maxAheadMS is how far ahead of its instant an AdvanceAt may be committed. When the
	// term changes it takes effect at once, so this bounds how far the clock moves then.
	maxAheadMS = 100
	// maxPending bounds those that wait for their instants.
	maxPending = 64
)

// pendingAdvance is an AdvanceAt that waits for its instant.
type pendingAdvance struct {
	at   int64
	term uint64 // of its entry
	op   []byte // the jobpb.AdvanceAt, encoded
}

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
	case x.ops.ClockEpoch() != meta.reset.epoch:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since this was proposed")
	case op.AtMs <= x.clock():
		return x.advanceNow(op)
	case op.AtMs > x.clock()+maxAheadMS:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "its instant is more than %d ms ahead of the clock", maxAheadMS)
	case len(meta.pending) >= maxPending:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "%d wait for their instants already", maxPending)
	}
	// What it becomes when it is decoded must not alias the entry.
	encoded, err := op.MarshalVT()
	if err != nil {
		return err
	}
	p := pendingAdvance{at: op.AtMs, term: x.term, op: encoded}
	at, _ := slices.BinarySearchFunc(meta.pending, p.at+1, func(q pendingAdvance, instant int64) int { return cmp.Compare(q.at, instant) })
	meta.pending = slices.Insert(meta.pending, at, p)
	x.pendingChanged = true
	return nil
}

// advanceNow lets an AdvanceAt take effect at the present clock.
func (x *tx) advanceNow(op *jobpb.AdvanceAt) error {
	if err := x.advance(op.Advance, new(jobpb.Result)); err != nil {
		return err
	}
	effect := Effect{Number: op.Number}
	for _, reserve := range op.Reserves {
		r := new(jobpb.Result)
		if err := x.reserveAhead(reserve, r); err != nil {
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
func (x *tx) isDue(p pendingAdvance, e Entry, nowMS int64) bool {
	switch {
	case e.Configuration:
		return false
	case e.Term != p.term:
		return true
	}
	return x.ops.ClockEpoch() == x.m.meta.reset.epoch && p.at <= nowMS
}

// takeEffects lets the first pending advances take effect, as long as they are due, each as
// an entry of its own would.
func (m *Machine) takeEffects(changes *Changes, changed map[string]int, due func(pendingAdvance) bool) error {
	x, meta := m.tx, &m.meta
	for len(meta.pending) > 0 && due(meta.pending[0]) {
		p := meta.pending[0]
		meta.pending = slices.Delete(meta.pending, 0, 1)
		x.pendingChanged = true
		meta.state.clockMS, x.roundedDown = max(meta.state.clockMS, p.at), false
		var op jobpb.AdvanceAt
		if err := op.UnmarshalVTUnsafe(p.op); err != nil {
			return fmt.Errorf("an advance for %d: %w", p.at, err)
		}
		if err := x.advanceNow(&op); err != nil {
			return fmt.Errorf("an advance for %d: %w", p.at, err)
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
	x, taken := m.tx, m.meta.taken
	if taken.at != 0 && !e.Configuration {
		if !x.isDue(taken, e, nowMS) {
			return fmt.Errorf("%w: the entry has the time %d, and the advance for %d came before it here", errOrder, nowMS, taken.at)
		}
		x.dropTaken()
	}
	return m.takeEffects(changes, changed, func(p pendingAdvance) bool { return x.isDue(p, e, nowMS) })
}

// errOrder: going on would make the state differ from that of the other nodes.
var errOrder = errors.New("an advance that was committed ahead took effect too early on this node: start it again; if that fails for the same reason, and the other nodes are a majority and run, move its data directory away and keep it, and start it with --join")

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
	if m.meta.reset.epoch == epoch && !m.follows() { // a standby's follow the primary's entries
		m.tx.replies = true
		m.tx.noteTaken(untilMS, term)
		changed := make(map[string]int)
		err := m.takeEffects(&changes, changed, func(p pendingAdvance) bool { return p.at <= untilMS && p.term == term })
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
	for _, p := range meta.pending {
		if p.at <= untilMS && p.term == term {
			last = p.at
		}
	}
	if last != 0 {
		meta.taken = pendingAdvance{at: last, term: term}
		x.value = meta.taken.appendTaken(x.value[:0])
		must(x.batch.Set(keyTaken, x.value, nil))
	}
}

func (x *tx) dropTaken() {
	if x.m.meta.taken.at != 0 {
		x.m.meta.taken = pendingAdvance{}
		must(x.batch.Delete(keyTaken, nil))
	}
}

// appendTaken encodes when and of which term an advance was that has taken effect.
func (p pendingAdvance) appendTaken(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, formatVersion), uint64(p.at))
	return binary.BigEndian.AppendUint64(b, p.term)
}

func decodeTaken(b []byte) (p pendingAdvance, err error) {
	if err := checkVersion("record of an advance that took effect", b, formatVersion); err != nil {
		return pendingAdvance{}, err
	}
	if len(b) != 17 {
		return pendingAdvance{}, fmt.Errorf("record of an advance that took effect, of %d bytes: %w", len(b), errShort)
	}
	return pendingAdvance{at: int64(binary.BigEndian.Uint64(b[1:])), term: binary.BigEndian.Uint64(b[9:])}, nil
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
	if pending := m.meta.pending; len(pending) > 0 && !m.follows() {
		end := pending[len(pending)-1]
		next, last, term = pending[0].at, end.at, end.term
	}
	m.effectTerm.Store(term)
	m.nextEffect.Store(next)
	m.lastEffect.Store(last)
}

// dropPending drops what waits for an instant of a clock that was set back, or of an old
// cluster.
func (x *tx) dropPending() {
	x.dropTaken()
	for _, p := range x.m.meta.pending {
		var op jobpb.AdvanceAt
		must(op.UnmarshalVTUnsafe(p.op))
		x.effects = append(x.effects, Effect{Number: op.Number})
	}
	if len(x.m.meta.pending) > 0 {
		x.m.meta.pending, x.pendingChanged = nil, true
	}
}

func (x *tx) writePending() {
	switch pending := x.m.meta.pending; {
	case !x.pendingChanged:
	case len(pending) == 0:
		must(x.batch.Delete(keyPending, nil))
	default:
		x.value = appendPending(x.value[:0], pending)
		must(x.batch.Set(keyPending, x.value, nil))
	}
}

func appendPending(b []byte, pending []pendingAdvance) []byte {
	b = append(b, formatVersion)
	for _, p := range pending {
		b = binary.BigEndian.AppendUint64(b, uint64(p.at))
		b = binary.BigEndian.AppendUint64(b, p.term)
		b = binary.AppendUvarint(b, uint64(len(p.op)))
		b = append(b, p.op...)
	}
	return b
}

func decodePending(b []byte) (pending []pendingAdvance, err error) {
	if err := checkVersion("record of pending advances", b, formatVersion); err != nil {
		return nil, err
	}
	b = slices.Clone(b[1:])
	for len(b) > 0 {
		if len(b) < 17 {
			return nil, fmt.Errorf("record of pending advances: %w", errShort)
		}
		n, w := binary.Uvarint(b[16:])
		if w <= 0 || n > uint64(len(b)-16-w) {
			return nil, fmt.Errorf("record of pending advances: %w", errShort)
		}
		end := 16 + w + int(n)
		p := pendingAdvance{at: int64(binary.BigEndian.Uint64(b)), term: binary.BigEndian.Uint64(b[8:]), op: b[16+w : end]}
		if err := new(jobpb.AdvanceAt).UnmarshalVTUnsafe(p.op); err != nil {
			return nil, fmt.Errorf("record of pending advances: %w", err)
		}
		pending, b = append(pending, p), b[end:]
	}
	return pending, nil
}
