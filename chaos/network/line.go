package network

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// backlog is the longest delay by bandwidth; packets beyond it are dropped.
const backlog = time.Second

// line decides when each packet of a delayed line arrives. It reads no clock.
type line struct {
	rule Rule
	rand *rand.Rand

	count    uint64
	last     time.Time // arrival of the last packet that was not reordered
	free     time.Time // when the line has sent all packets so far
	underWay arrivals
}

func newLine(r Rule) *line {
	return &line{rule: r, rand: rand.New(rand.NewPCG(r.Seed, 0))}
}

// send accepts a packet of size bytes; false: the line is full and the packet is lost.
func (l *line) send(id uint32, size int, now time.Time) bool {
	carried := now
	if l.rule.Rate > 0 {
		if l.free.Before(now) {
			l.free = now
		}
		if l.free.Sub(now) > backlog {
			return false
		}
		l.free = l.free.Add(time.Duration(size) * time.Second / time.Duration(l.rule.Rate))
		carried = l.free
	}
	at := carried
	if l.rule.Reorder == 0 || l.rand.Float64() >= l.rule.Reorder {
		at = at.Add(l.rule.Delay)
		if j := int64(l.rule.Jitter); j > 0 {
			at = at.Add(time.Duration(l.rand.Int64N(2*j+1) - j))
		}
		if at.Before(l.last) {
			at = l.last
		}
		l.last = at
	}
	l.count++
	heap.Push(&l.underWay, arrival{at, l.count, id})
	return true
}

// arrive removes the next packet that has arrived by now.
func (l *line) arrive(now time.Time) (id uint32, ok bool) {
	if len(l.underWay) == 0 || l.underWay[0].at.After(now) {
		return 0, false
	}
	return heap.Pop(&l.underWay).(arrival).id, true
}

// next returns when the next packet arrives; zero: none is in flight.
func (l *line) next() time.Time {
	if len(l.underWay) == 0 {
		return time.Time{}
	}
	return l.underWay[0].at
}

type arrival struct {
	at    time.Time
	count uint64 // equal times keep the order of sending
	id    uint32
}

type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].count < a[j].count
	}
	return a[i].at.Before(a[j].at)
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}
