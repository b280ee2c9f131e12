package lending

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// The world of the explorer: nodes with their Lenders, streams between them, and groups whose logs commit at any
// time. It is small enough to be copied at each step.
const (
	maxNodes   = 3
	maxGroups  = 2
	maxTopics  = 2
	maxWaiters = 3
	maxJobs    = 3
)

var (
	nodeNames  = [maxNodes]string{"n0", "n1", "n2"}
	topicNames = [maxTopics]string{"a", "b"}
)

func nodeOf(name string) int  { return int(name[1] - '0') }
func topicOf(name string) int { return int(name[0] - 'a') }

// config is one small cluster, and how often what may happen at any time does.
type config struct {
	name                            string
	short                           bool
	nodes, groups, waiters, jobs    int
	home, max                       [maxWaiters]int
	topics                          [maxWaiters]string // "a", "b" or "ab"
	poll                            [maxWaiters]bool
	jobGroup                        [maxJobs]int
	jobTopic                        [maxJobs]int
	leader                          [maxGroups]int
	soon                            bool // jobs are known before they are ready
	losses, moves, crashes, deletes int8
	deadlines, hangUps, forgets     int8
}

type waiterState uint8

const (
	absent waiterState = iota
	here               // in the queues of its home
	busy               // a Reserve of a group that its home leads is under way
	lent
	ended
)

type jobState uint8

const (
	unborn jobState = iota
	soon            // falls due within the time that a proposal takes
	ready
	reserved // named by a Granted that is under way
	delivered
	lost // reserved, and nobody knows: ready again once its lease expires
	deleted
	releasing // a release of it is under way
)

type waiter struct {
	state waiterState
	left  leaving
	got   int8
}

type guestState uint8

const (
	noGuest guestState = iota
	guestWaits
	guestBusy
)

// reserve is one in the log of a group.
type reserve struct {
	group, node, waiter int8
	guest               bool
	left                leaving
	abandoned           bool // its guest's stream broke
	claims              [maxTopics]int8
}

// stream is from a home to a supplier.
type stream struct {
	up, down             []Message
	homeStale, suppStale bool // the end has not noticed yet that it broke
}

type world struct {
	c        *config
	lenders  [maxNodes]*Lender
	streams  [maxNodes][maxNodes]stream // from home to supplier
	waiters  [maxWaiters]waiter
	guests   [maxNodes][maxWaiters]guestState
	reserves []reserve
	jobs     [maxJobs]jobState
	leader   [maxGroups]int8
	leads    [maxNodes][maxGroups]bool // as the node knows

	losses, moves, crashes, deletes, deadlines, hangUps, forgets int8

	choice  choice // of the step that is being made
	problem string // that it has found
}

// choice is what the protocol's result must not depend on, in one step.
type choice struct {
	hintsFirst, last           bool
	askedHints, askedWhichNode bool // the step has asked for the choice
}

func newWorld(c *config) *world {
	w := &world{
		c: c, losses: c.losses, moves: c.moves, crashes: c.crashes, deletes: c.deletes,
		deadlines: c.deadlines, hangUps: c.hangUps, forgets: c.forgets,
	}
	for n := range c.nodes {
		w.restart(n)
	}
	for g := range c.groups {
		w.leader[g] = int8(c.leader[g])
		w.leads[c.leader[g]][g] = true
	}
	return w
}

// restart gives a node an empty Lender with a stream to and from each other node.
func (w *world) restart(n int) {
	w.lenders[n] = w.lender(n)
	for p := range w.c.nodes {
		if p != n {
			w.lenders[n].OpenSupplier(nodeNames[p])
			w.lenders[n].OpenHome(nodeNames[p])
		}
	}
}

func (w *world) lender(n int) *Lender {
	l := New(room{w, n})
	l.hintsFirst = func(t string) bool {
		for _, s := range l.suppliers {
			if s.hint[t] > 0 {
				w.choice.askedHints = true
				return w.choice.hintsFirst
			}
		}
		return false
	}
	l.begin = func(n int) int {
		w.choice.askedWhichNode = n > 1
		if w.choice.last {
			return n - 1
		}
		return 0
	}
	return l
}

// copy returns a world in which an event may change the Lender of node n. The others are shared.
func (w *world) copy(n int) *world {
	c := new(world)
	*c = *w
	c.reserves = slices.Clone(w.reserves)
	c.choice, c.problem = choice{}, ""
	for a := range w.c.nodes {
		for b := range w.c.nodes {
			x := &c.streams[a][b]
			x.up, x.down = slices.Clip(x.up), slices.Clip(x.down) // appending copies
		}
	}
	old, l := w.lenders[n], c.lender(n)
	same := map[*supplier]*supplier{}
	for _, s := range old.suppliers {
		same[s] = &supplier{s.name, maps.Clone(s.told), s.most, maps.Clone(s.hint)}
		l.suppliers = append(l.suppliers, same[s])
	}
	of := func(s *supplier) *supplier {
		if same[s] == nil { // its stream broke
			same[s] = &supplier{name: s.name}
		}
		return same[s]
	}
	for _, h := range old.homes {
		l.homes = append(l.homes, &home{h.name, maps.Clone(h.interest), maps.Clone(h.asked), maps.Clone(h.guests)})
	}
	for id, p := range old.loans {
		q := &loan{to: of(p.to), leaving: p.leaving, poll: p.poll}
		for _, s := range p.left {
			q.left = append(q.left, of(s))
		}
		l.loans[id] = q
	}
	c.lenders[n] = l
	return c
}

func (w *world) bad(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf(format, args...)
	}
}

func (w *world) waitsFor(i int, t int) bool {
	for _, c := range w.c.topics[i] {
		if int(c-'a') == t {
			return true
		}
	}
	return false
}

func (w *world) topicsOf(i int) (topics []string) {
	for _, c := range w.c.topics[i] {
		topics = append(topics, string(c))
	}
	return topics
}

func (w *world) hereFor(n, i, t int) bool {
	return w.c.home[i] == n && w.waiters[i].state == here && w.waitsFor(i, t)
}

// free returns how many ready jobs nobody has claimed at a node, of one group.
func (w *world) free(n, g, t int) int {
	if !w.leads[n][g] {
		return 0
	}
	free := 0
	for j := range w.c.jobs {
		if w.jobs[j] == ready && w.c.jobGroup[j] == g && w.c.jobTopic[j] == t {
			free++
		}
	}
	for _, r := range w.reserves {
		if int(r.group) == g && int(r.node) == n {
			free -= int(r.claims[t])
		}
	}
	return max(free, 0)
}

// take puts a Reserve for a waiter at a node into the log of a group that has jobs for it.
func (w *world) take(n, i int, guest bool) {
	for g := range w.c.groups {
		r := reserve{group: int8(g), node: int8(n), waiter: int8(i), guest: guest}
		left := w.c.max[i]
		for t := range maxTopics {
			if w.waitsFor(i, t) {
				k := min(left, w.free(n, g, t))
				r.claims[t] = int8(k)
				left -= k
			}
		}
		if left == w.c.max[i] {
			continue
		}
		if guest {
			w.guests[n][i] = guestBusy
		} else {
			w.waiters[i].state = busy
		}
		w.reserves = append(w.reserves, r)
		return
	}
}

func (w *world) setJobs(jobs any, s jobState) {
	for j := range w.c.jobs {
		if jobs.(uint8)>>j&1 == 1 {
			if w.jobs[j] != reserved {
				w.bad("job %d has two owners", j)
			}
			w.jobs[j] = s
		}
	}
}

// room is the dispatcher of one node.
type room struct {
	*world
	n int
}

func (r room) Match(topics []string) {
	waits := func(i int) bool {
		return slices.ContainsFunc(topics, func(t string) bool { return r.waitsFor(i, topicOf(t)) })
	}
	for i := range r.c.waiters {
		if r.guests[r.n][i] == guestWaits && waits(i) {
			r.take(r.n, i, true)
		}
	}
	for i := range r.c.waiters {
		if r.c.home[i] == r.n && r.waiters[i].state == here && waits(i) {
			r.take(r.n, i, false)
		}
	}
}

func (r room) Free(topic string) (n int) {
	for g := range r.c.groups {
		n += r.free(r.n, g, topicOf(topic))
	}
	return n
}

func (r room) Soon(topic string) (n int) {
	for j := range r.c.jobs {
		if r.jobs[j] == soon && r.c.jobTopic[j] == topicOf(topic) && r.leads[r.n][r.c.jobGroup[j]] {
			n++
		}
	}
	return n
}

func (r room) Waiting(topic string) (n int) {
	for i := range r.c.waiters {
		if r.hereFor(r.n, i, topicOf(topic)) || r.guests[r.n][i] == guestWaits && r.waitsFor(i, topicOf(topic)) {
			n++
		}
	}
	return n
}

func (r room) First(topic string) (uint64, bool) {
	for i := range r.c.waiters {
		if r.hereFor(r.n, i, topicOf(topic)) {
			return uint64(i), true
		}
	}
	return 0, false
}

func (r room) Reserve(i uint64) ([]string, int) { return r.topicsOf(int(i)), r.c.max[i] }

func (r room) Topics() iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range maxTopics {
			if _, ok := r.First(topicNames[t]); ok && !yield(topicNames[t]) {
				return
			}
		}
	}
}

func (r room) Remove(i uint64)  { r.waiters[i].state = lent }
func (r room) Requeue(i uint64) { r.waiters[i].state = here }
func (r room) End(i uint64)     { r.waiters[i].state = ended }
func (r room) Release(jobs any) { r.setJobs(jobs, releasing) }
func (r room) Deliver(i uint64, jobs any) {
	r.deliver(int(i), jobs)
	r.waiters[i].state = ended
}

func (w *world) deliver(i int, jobs any) {
	x := &w.waiters[i]
	if x.state == ended || x.left == gone {
		w.bad("waiter %d is gone and gets jobs", i)
	}
	for j := range w.c.jobs {
		if jobs.(uint8)>>j&1 == 1 {
			x.got++
		}
	}
	if int(x.got) > w.c.max[i] {
		w.bad("waiter %d gets %d jobs and asked for %d", i, x.got, w.c.max[i])
	}
	w.setJobs(jobs, delivered)
}

func (r room) Guests(topic string) iter.Seq2[Guest, []string] {
	return func(yield func(Guest, []string) bool) {
		for i := range r.c.waiters {
			g := Guest{nodeNames[r.c.home[i]], uint64(i)}
			if r.guests[r.n][i] == guestWaits && r.waitsFor(i, topicOf(topic)) && !yield(g, r.topicsOf(i)) {
				return
			}
		}
	}
}

func (r room) CancelGuest(g Guest, keep bool) ([]string, bool) {
	i := int(g.Waiter)
	if r.guests[r.n][i] == guestWaits {
		r.guests[r.n][i] = noGuest
		return r.topicsOf(i), true
	}
	r.mark(i, true, func(x *reserve) {
		if keep {
			x.left = max(x.left, expired)
		} else {
			x.left = gone
		}
	})
	return r.topicsOf(i), false
}

func (r room) AbandonGuest(g Guest) []string {
	i := int(g.Waiter)
	r.guests[r.n][i] = noGuest
	r.mark(i, true, func(x *reserve) { x.abandoned, x.left = true, gone })
	return r.topicsOf(i)
}

// mark changes the Reserve that is under way at a node for a waiter.
func (r room) mark(i int, guest bool, change func(*reserve)) {
	for k := range r.reserves {
		x := &r.reserves[k]
		if int(x.node) == r.n && int(x.waiter) == i && x.guest == guest && !x.abandoned {
			change(x)
		}
	}
}

func (r room) Send(to string, m Message) {
	p := nodeOf(to)
	switch m.Kind {
	case Interest, Lend, Done, Cancel:
		if s := &r.streams[r.n][p]; !s.homeStale {
			s.up = append(s.up, m)
		}
	default:
		s := &r.streams[p][r.n]
		if !s.suppStale {
			s.down = append(s.down, m)
		} else if m.Jobs != nil {
			r.setJobs(m.Jobs, lost)
		}
	}
}
