package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tarry/chaos/fault"
)

// catalogue is every fault there is.
func catalogue() []fault.Fault {
	return slices.Concat(
		fault.Process(), fault.Stall(), fault.Lasting(), fault.Limits(),
		fault.Membership(),
		fault.Network(), fault.Address(), fault.Load(), fault.Hostile(),
		fault.Disk(), fault.Reads(),
		fault.Corrupt(), fault.Together(),
		fault.Hooks(), fault.Upgrade(),
	)
}

// pick chooses from all faults those that a run may inject: the named ones or,
// without names, all that have a weight and what they need. A named one that
// lacks something is an error. lacking says what was left out and why.
func pick(all []fault.Fault, names string, have fault.Needs) (chosen []fault.Fault, lacking []string, err error) {
	if names == "none" {
		return nil, nil, nil
	}
	if names == "" {
		for _, f := range all {
			switch lacks := f.Needs.Lacks(have); {
			case f.Weight == 0:
			case lacks != 0:
				lacking = append(lacking, fmt.Sprintf("%s (needs %v)", f.Name, lacks))
			default:
				chosen = append(chosen, f)
			}
		}
		return chosen, lacking, nil
	}
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(f fault.Fault) bool { return f.Name == name })
		if i < 0 {
			return nil, nil, fmt.Errorf("no fault is called %q; there are: %s", name, list(all))
		}
		f := all[i]
		if lacks := f.Needs.Lacks(have); lacks != 0 {
			return nil, nil, fmt.Errorf("the fault %s needs %v, which this run does not have", name, lacks)
		}
		f.Weight = max(f.Weight, 1)
		chosen = append(chosen, f)
	}
	return chosen, nil, nil
}

func list(faults []fault.Fault) string {
	var names []string
	for _, f := range faults {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// step is one row of the schedule: a pause, then one fault or two side by side.
type step struct {
	number int
	pause  time.Duration
	faults []fault.Fault
}

// schedule deals steps. It depends on the seed and the faults only.
type schedule struct {
	seed   uint64
	rand   *rand.Rand
	faults []fault.Fault
	deck   []fault.Fault // what is left to deal before it is shuffled anew
	dealt  int
}

// Streams of randomness that come from one seed.
const (
	scheduleStream = 1 << 32
	faultStream    = 1 << 33 // and above
)

func newSchedule(seed uint64, faults []fault.Fault) *schedule {
	return &schedule{seed: seed, rand: rand.New(rand.NewPCG(seed, scheduleStream)), faults: faults}
}

// The pauses between faults let the cluster recover, so that each fault meets a
// working one.
const (
	minPause = 500 * time.Millisecond
	maxPause = 2500 * time.Millisecond
	// Now and then a pause is so long that the judge of lateness sees a cluster without faults.
	calmOdds = 16
	minCalm  = 8 * time.Second
	maxCalm  = 12 * time.Second
	// besideOdds is how rarely a second fault runs beside the first.
	besideOdds = 4
)

// next deals the next step; ok is false when there are no faults.
func (s *schedule) next() (step, bool) {
	if len(s.faults) == 0 {
		return step{}, false
	}
	st := step{number: s.dealt, pause: minPause + time.Duration(s.rand.Int64N(int64(maxPause-minPause)))}
	s.dealt++
	if s.rand.IntN(calmOdds) == 0 {
		st.pause = minCalm + time.Duration(s.rand.Int64N(int64(maxCalm-minCalm)))
	}
	first := s.draw()
	st.faults = []fault.Fault{first}
	if first.Overlaps && s.rand.IntN(besideOdds) == 0 {
		if i := slices.IndexFunc(s.deck, func(f fault.Fault) bool { return f.Overlaps && f.Name != first.Name }); i >= 0 {
			st.faults = append(st.faults, s.deck[i])
			s.deck = slices.Delete(s.deck, i, i+1)
		}
	}
	return st, true
}

// draw deals from a deck that holds each fault as often as it weighs, so that a
// run of some length has them all.
func (s *schedule) draw() fault.Fault {
	if len(s.deck) == 0 {
		for _, f := range s.faults {
			for range f.Weight {
				s.deck = append(s.deck, f)
			}
		}
		s.rand.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	}
	f := s.deck[0]
	s.deck = s.deck[1:]
	return f
}

// random is the randomness of the nth fault of a step.
func (s *schedule) random(st step, n int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, faultStream+uint64(st.number)*8+uint64(n)))
}
