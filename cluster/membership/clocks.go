package membership

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Time enters the state by the leader's clock, so a leader's clock must be right.
// Right is what the voters' clocks say together: the lower median of those that
// answer, because late is safe and early is not. Every status call tells the time,
// and its round trip bounds the error, as in NTP.
//
//   - A node whose clock is off that by more than Config.MaxClockOffset, beyond all
//     error, does not lead while a majority of the voters agrees: it hands
//     leadership to a voter whose clock is right.
//   - While no majority agrees, nobody can be blamed and nobody gives way. The
//     leader's entries go by the lower median all the same (Config.ClockConfirmed).
//   - A single voter has nobody to ask: its clock is right.

// DefaultMaxClockOffset is far above what NTP leaves and the error of a call between
// nodes, so that a healthy node is never blamed. It is about as much as a clock
// without NTP drifts in a day, and few delays are so short that it spoils them.
const DefaultMaxClockOffset = 5 * time.Second

// clockReading is what a server's clock said.
type clockReading struct {
	wall   time.Time     // without a monotonic reading
	at     time.Time     // when, by this node's monotonic clock
	within time.Duration // how far at may be wrong: half of the round trip
}

// then is what the clock says at another instant, if it goes as it should.
func (r clockReading) then(at time.Time) time.Time { return r.wall.Add(at.Sub(r.at)) }

// clockReadings are the last ones of the servers that were asked.
type clockReadings struct {
	mu sync.Mutex
	of map[raft.ServerID]clockReading
}

// heard takes in the answer to a call from one instant to another.
func (c *clockReadings) heard(id raft.ServerID, wall, from, to time.Time) {
	half := to.Sub(from) / 2
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[raft.ServerID]clockReading)
	}
	c.of[id] = clockReading{wall: wall, at: from.Add(half), within: half}
}

// since gives those that are not older than the instant, and forgets the others.
func (c *clockReadings) since(oldest time.Time) map[raft.ServerID]clockReading {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := make(map[raft.ServerID]clockReading)
	for id, r := range c.of {
		if r.at.Before(oldest) {
			delete(c.of, id)
			continue
		}
		fresh[id] = r
	}
	return fresh
}

// clockOffset is how far a clock is ahead of the majority's, and how far that may
// be wrong.
type clockOffset struct{ by, within time.Duration }

// clockVerdict is what readings say together.
type clockVerdict struct {
	at       time.Time // with its monotonic reading
	majority time.Time // the voters' clock then; zero: no majority of them answered
	within   time.Duration
	agreed   bool          // a majority of the voters goes by it
	ahead    time.Duration // how far the queue's clock is ahead of it; 0 where nobody asked
	most     time.Duration
	offsets  map[raft.ServerID]clockOffset // of all servers that answered
}

// judgeClocks compares clocks at an instant. most is how far one may be off.
func judgeClocks(voters []raft.ServerID, readings map[raft.ServerID]clockReading, at time.Time, most time.Duration) clockVerdict {
	v := clockVerdict{at: at, most: most}
	var known []clockReading
	for _, id := range voters {
		if r, ok := readings[id]; ok {
			known = append(known, r)
		}
	}
	if len(known) < quorum(len(voters)) || len(known) == 0 {
		return v
	}
	slices.SortFunc(known, func(a, b clockReading) int { return a.then(at).Compare(b.then(at)) })
	median := known[(len(known)-1)/2]
	v.majority, v.within = median.then(at), median.within
	v.offsets = make(map[raft.ServerID]clockOffset, len(readings))
	for id, r := range readings {
		o := clockOffset{by: r.then(at).Sub(v.majority), within: r.within + median.within}
		if r == median {
			o.within = 0
		}
		v.offsets[id] = o
	}
	right := 0
	for _, id := range voters {
		if v.right(id) {
			right++
		}
	}
	v.agreed = right >= quorum(len(voters))
	return v
}

// right reports whether a server has told a time that may be the majority's.
func (v *clockVerdict) right(id raft.ServerID) bool {
	o, known := v.offsets[id]
	return known && o.by.Abs()-o.within <= v.most
}

// off reports whether a server's clock is known not to be the majority's.
func (v *clockVerdict) off(id raft.ServerID) bool {
	_, known := v.offsets[id]
	return v.agreed && known && !v.right(id)
}

// reasons says in sentences what is wrong with the clocks.
func (v *clockVerdict) reasons() (list []string) {
	ids := make([]raft.ServerID, 0, len(v.offsets))
	for id := range v.offsets {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var apart []string
	for _, id := range ids {
		node, by := nodeIDOf(string(id)), v.offsets[id].by
		if v.off(id) {
			list = append(list, fmt.Sprintf("the clock of %s is %s the majority's; more than %v keeps it from leading: set it right", node, aheadOf(by), v.most))
		}
		apart = append(apart, fmt.Sprintf("%s %+.3f s", node, by.Seconds()))
	}
	if !v.majority.IsZero() && !v.agreed {
		list = append(list, fmt.Sprintf("no majority of the voters' clocks agrees within %v: %s; the queue goes by the lower median", v.most, strings.Join(apart, ", ")))
	}
	if v.ranAway() {
		list = append(list, fmt.Sprintf("the queue's clock is %s the nodes': jobs come early; set it back with \"tarry cluster clock reset\"", aheadOf(v.ahead)))
	}
	return list
}

// ranAway reports whether the queue's clock is to be set back.
func (v *clockVerdict) ranAway() bool { return v.agreed && v.ahead > v.most }

func aheadOf(by time.Duration) string {
	word := "ahead of"
	if by < 0 {
		word = "behind"
	}
	return fmt.Sprintf("%v %s", by.Abs().Round(time.Millisecond), word)
}

// wall is this node's clock without a monotonic reading, so that a step of it shows.
func (m *Membership) wall() time.Time { return m.cfg.Now().Round(0) }

// clockNow is the verdict on what was heard since an instant; this node's own
// clock is read now.
func (m *Membership) clockNow(oldest time.Time) clockVerdict {
	at := time.Now()
	readings := m.clocks.since(oldest)
	readings[m.self()] = clockReading{wall: m.wall(), at: at}
	return judgeClocks(votersOf(m.configuration()), readings, at, m.cfg.MaxClockOffset)
}

func (m *Membership) self() raft.ServerID { return raft.ServerID(m.cfg.ServerID) }

// earliest is what the majority's clock says for certain: early is not safe.
func (v *clockVerdict) earliest() time.Time { return v.majority.Add(-v.within) }

// then is the majority's clock at another instant.
func (v *clockVerdict) then(at time.Time) time.Time { return v.majority.Add(at.Sub(v.at)) }
