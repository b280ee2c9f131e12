package fsm

import (
	"slices"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func init() {
	modelOps["advance_at"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.advanceAt(op.GetAdvanceAt(), r) },
		some: func(s *simulation) *jobpb.Op {
			op := &jobpb.AdvanceAt{
				AtMs: s.model.clock + s.pick(-1, 0, 1, 1, 3, 10, 40, 100, 101), Number: s.rng.Uint64(),
				Advance: &jobpb.Advance{Max: uint32(s.pick(0, 1, 5, 1000)), Entropy: s.rng.Uint64()},
			}
			for range s.rng.IntN(3) {
				op.Reserves = append(op.Reserves, &jobpb.Reserve{Topics: []string{s.topic(), s.topic()}, Max: uint32(s.pick(1, 1, 3)), TtrMs: s.pick(0, 20, 1000), Consumer: s.consumer()})
			}
			return &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: op}}
		},
	}
}

// modelAhead is what was committed ahead and has not taken effect.
type modelAhead struct {
	op   *jobpb.AdvanceAt
	term uint64
}

// modelEffects are what was committed ahead, and what came of it.
type modelEffects struct {
	ahead        []modelAhead
	effects      map[uint64][]*jobpb.Result // of each, by number; none: it was dropped
	effectsSince [][]*jobpb.Result          // the same, for a test to take
	// Of the entry under way.
	term, entryEpoch uint64
	rounded          bool // the clock is the time of the entry, which was rounded down
}

func (m *model) advanceAt(op *jobpb.AdvanceAt, r *jobpb.Result) {
	bad := op.Advance.Max == 0 || op.AtMs < 1
	for _, k := range op.Reserves {
		bad = bad || len(k.Consumer) > 64
	}
	switch {
	case bad:
		r.Code = jobpb.Code_INVALID
	case m.entryEpoch != m.reset.epoch, op.AtMs > m.clock+100, op.AtMs > m.clock && len(m.ahead) == 64:
		r.Code = jobpb.Code_CONDITION_FAILED
	case op.AtMs <= m.clock:
		m.takeEffect(op)
	default:
		m.ahead = append(m.ahead, modelAhead{proto.CloneOf(op), m.term})
		slices.SortStableFunc(m.ahead, func(a, b modelAhead) int { return int(a.op.AtMs - b.op.AtMs) })
	}
}

func (m *model) takeEffect(op *jobpb.AdvanceAt) {
	m.apply(&jobpb.Op{Kind: &jobpb.Op_Advance{Advance: op.Advance}})
	results := []*jobpb.Result{}
	for _, k := range op.Reserves {
		results = append(results, m.apply(&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: k}}))
	}
	m.effects[op.Number] = results
	m.effectsSince = append(m.effectsSince, results)
}

// takeEffects does what comes before an entry.
func (m *model) takeEffects(now int64, epoch, term uint64) {
	for len(m.ahead) > 0 {
		next := m.ahead[0]
		if next.term == term && (epoch != m.reset.epoch || now < next.op.AtMs) {
			return
		}
		m.ahead = m.ahead[1:]
		m.clock, m.rounded = max(m.clock, next.op.AtMs), false
		m.reset.justNow, m.walk.justNow = false, false
		m.takeEffect(next.op)
	}
}

// takeEffectEarly lets a machine do what its next entry of operations would do first, as a
// leader may. Nothing that comes later may tell the difference.
func (s *simulation) takeEffectEarly(r *replica) {
	at := slices.IndexFunc(s.log[r.at:], func(e Entry) bool { return !e.Configuration })
	pending := r.m.meta.Pending
	if at < 0 || len(pending) == 0 {
		return
	}
	next := s.log[r.at+at]
	var ops oplog.OpReader
	until, err := ops.ReadEntry(next.Data)
	require.NoError(s.t, err)
	epoch := r.m.meta.Reset.Epoch
	switch {
	case next.Term != pending[0].Term:
		until = pending[s.trouble.IntN(len(pending))].At
	case ops.ClockEpoch() != epoch:
		return
	}
	changes, err := r.m.TakeEffect(until, pending[0].Term, epoch)
	require.NoError(s.t, err)
	s.compareEffects(r, changes)
	require.Equal(s.t, r.m.NextDue(), changes.NextDue)
	r.happened("took effect early, until %d", until)
	r.check()
}

// compareEffects compares what took effect with the model's.
func (s *simulation) compareEffects(r *replica, changes Changes) {
	for _, e := range changes.Effects {
		want := s.model.effects[e.Number]
		require.Len(s.t, e.Results, len(want))
		for i, got := range e.Results {
			requireResult(s.t, want[i], got, "reserve %d of an advance ahead on %s", i, r.name)
		}
	}
}
