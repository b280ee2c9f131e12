package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
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

const (
	// confirmTimeout bounds the wait for the voters' clocks by a new leader.
	confirmTimeout = time.Second
	// askAgain is how soon it asks those again that could not be reached.
	askAgain = 50 * time.Millisecond
)

// errClockOff keeps a node whose clock is off from leading.
var errClockOff = errors.New("this node's clock is off the majority's: it does not lead")

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

// ConfirmClock asks the voters for the time, for a leader that is not established
// yet, and tells what they say (Config.ClockConfirmed). It returns as soon as a
// majority agrees, else after a second. It is an error when no majority answers;
// and when this node's clock is off the majority's: then leadership was handed to a
// voter whose clock is right, if that could be done.
func (m *Membership) ConfirmClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	v := m.askClocks(ctx, votersOf(m.configuration()), agreed)
	for v.majority.IsZero() { // the connections may be new: after a heal, or a start
		if pause(ctx, askAgain) != nil {
			return fmt.Errorf("no majority of the voters has told the time within %v", confirmTimeout)
		}
		v = m.askClocks(ctx, votersOf(m.configuration()), agreed)
	}
	m.cfg.ClockConfirmed(v.at, v.earliest())
	m.sayClocks(v)
	if !v.off(m.self()) {
		return nil
	}
	var fit []raft.ServerID
	for _, id := range votersOf(m.configuration()) {
		if id != m.self() && v.right(id) {
			fit = append(fit, id)
		}
	}
	m.giveClockAway(fit)
	return errClockOff
}

// agreed and never say when askClocks has heard enough.
func agreed(v clockVerdict) bool { return v.agreed }
func never(clockVerdict) bool    { return false }

// askClocks asks servers at once, until all have answered, what they said is enough,
// or the time is over.
func (m *Membership) askClocks(ctx context.Context, servers []raft.ServerID, enough func(clockVerdict) bool) clockVerdict {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	began := time.Now()
	answered := make(chan struct{})
	left := 0
	for _, id := range servers {
		addr, err := m.ServerAddr(id)
		if err != nil || id == m.self() {
			continue
		}
		left++
		asking.Go(func() {
			if _, err := m.ask(ctx, string(id), string(addr)); err != nil {
				m.cfg.Logger.Debug("no status", "server", id, "error", err)
			}
			select {
			case answered <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}
	for {
		v := m.clockNow(began)
		if enough(v) || left == 0 {
			return v
		}
		select {
		case <-answered:
			left--
		case <-ctx.Done():
			return m.clockNow(began)
		}
	}
}

// lookAtClocks is the leader's look at what it has heard lately. A leader that is
// off asks again before it believes it: what it goes by may have stood still with
// the machine.
func (m *Membership) lookAtClocks(ctx context.Context, g *reign) {
	v := m.clockNow(time.Now().Add(-conditionLooks * m.cfg.Timing.Health))
	if v.majority.IsZero() || !v.right(m.self()) {
		v = m.askClocks(ctx, votersOf(m.configuration()), agreed)
	}
	if v.majority.IsZero() {
		return // Raft finds out by itself whether a majority is left
	}
	v.ahead = m.queueAhead(v)
	g.clocks.Store(&v)
	m.cfg.ClockConfirmed(v.at, v.earliest())
	m.sayClocks(v)
	if !v.off(m.self()) {
		return
	}
	fit := slices.DeleteFunc(m.fitToLead(g), func(id raft.ServerID) bool { return id == m.self() || !v.right(id) })
	m.giveClockAway(fit)
}

// giveClockAway hands leadership to a voter whose clock is right.
func (m *Membership) giveClockAway(fit []raft.ServerID) {
	if len(fit) == 0 {
		return // with the next look, perhaps
	}
	m.gaveWay.Add(1)
	to := nodeIDOf(string(fit[0]))
	err := m.handOver(to)
	if err == nil {
		return
	}
	m.clocksMu.Lock()
	defer m.clocksMu.Unlock()
	if why := to + ": " + err.Error(); why != m.keptBecause {
		m.keptBecause = why
		m.cfg.Logger.Warn("could not hand leadership over; trying again", "to", to, "because", errClockOff, "error", err)
	}
}

// sayClocks logs what is wrong with the clocks when that changes.
func (m *Membership) sayClocks(v clockVerdict) {
	var wrong []string
	for id := range v.offsets {
		if v.off(id) {
			wrong = append(wrong, string(id))
		}
	}
	slices.Sort(wrong)
	now := strings.Join(wrong, " ")
	if !v.agreed {
		now = "no majority agrees"
	}
	if v.ranAway() {
		now += " and the queue's"
	}
	m.clocksMu.Lock()
	defer m.clocksMu.Unlock()
	if now == m.clocksSaid {
		return
	}
	m.clocksSaid = now
	if reasons := v.reasons(); len(reasons) > 0 {
		m.cfg.Logger.Warn("clocks are off", "because", strings.Join(reasons, "; "))
		return
	}
	m.cfg.Logger.Info("the clocks of all that answer are right again")
}

// checkClockOf refuses a node as the next leader whose clock is off: it would give
// leadership back. It asks the voters now.
func (m *Membership) checkClockOf(ctx context.Context, nodeID string) error {
	target, ok := findServer(m.configuration(), nodeID)
	if !ok {
		return nil // handOver says so, or chooses
	}
	v := m.askClocks(ctx, votersOf(m.configuration()), never)
	if !v.off(target.ID) {
		return nil
	}
	return job.Errorf(job.CodeConflict, "the clock of %s is %s the majority's; more than %v keeps it from leading: set it right first",
		nodeID, aheadOf(v.offsets[target.ID].by), v.most)
}

// clockTold is what a leader has last told this node about its clock.
type clockTold struct {
	by time.Duration
	at time.Time
}

// tellClock is what a request for a server's status tells it about its clock.
func (m *Membership) tellClock(id raft.ServerID, req *memberpb.StatusRequest) {
	g := m.reign.Load()
	if g == nil {
		return
	}
	if v := g.clocks.Load(); v != nil && v.off(id) {
		req.ClockOff, req.ClockOffsetUs = true, v.offsets[id].by.Microseconds()
	}
}

// hearClock takes that in, if the leader tells it.
func (m *Membership) hearClock(req *memberpb.StatusRequest) {
	if r := m.raft.Load(); r != nil && req.GetClockOff() {
		if _, leader := r.LeaderWithID(); string(leader) == req.GetServerId() {
			m.clockTold.Store(&clockTold{micros(req.ClockOffsetUs), time.Now()})
		}
	}
}

// ClockOff says that this node's clock is off the majority's, by what the leader has
// said of late; empty: it is not, as far as is known.
func (m *Membership) ClockOff() string {
	told := m.clockTold.Load()
	if told == nil || time.Since(told.at) > conditionLooks*m.cfg.Timing.Health {
		return ""
	}
	return fmt.Sprintf("this node's clock is %s the majority's; more than %v keeps it from leading: set it right", aheadOf(told.by), m.cfg.MaxClockOffset)
}

// clockReasons are the sentences of Health.
func (m *Membership) clockReasons(g *reign) []string {
	v := g.clocks.Load()
	if v == nil {
		return nil
	}
	return v.reasons()
}

// ClockOffsets are how far the clocks of the members are ahead of the majority's,
// by node id, as this leader last saw them; nil on other nodes.
func (m *Membership) ClockOffsets() map[string]time.Duration {
	g := m.reign.Load()
	if g == nil {
		return nil
	}
	v := g.clocks.Load()
	if v == nil {
		return nil
	}
	list := make(map[string]time.Duration, len(v.offsets))
	for id, o := range v.offsets {
		list[nodeIDOf(string(id))] = o.by
	}
	return list
}

// Clocks compares the clocks of all members now, as the leader sees them. It blocks
// for some seconds at most.
func (m *Membership) Clocks(ctx context.Context) (job.Clocks, error) {
	return viaLeader(ctx, m, readCall, m.clocksHere, func(ctx context.Context, c memberpb.MembershipClient) (job.Clocks, error) {
		resp, err := c.Clocks(ctx, &memberpb.ClocksRequest{})
		return clocksFromPB(resp), err
	})
}

func (m *Membership) clocksHere(ctx context.Context) (job.Clocks, error) {
	r := m.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return job.Clocks{}, errNotLeader
	}
	var ids []raft.ServerID
	servers := m.configuration().Servers
	for _, s := range servers {
		ids = append(ids, s.ID)
	}
	v := m.askClocks(ctx, ids, never)
	out := job.Clocks{MaxOffset: m.cfg.MaxClockOffset, Agreed: v.agreed}
	if !v.majority.IsZero() {
		out.Majority = v.majority
		out.ClusterAhead = m.queueAhead(v)
	}
	for _, s := range servers {
		o, known := v.offsets[s.ID]
		out.Nodes = append(out.Nodes, job.NodeClock{
			ID: nodeIDOf(string(s.ID)), Voter: s.Suffrage == raft.Voter, Known: known,
			Offset: o.by, Within: o.within, Off: v.off(s.ID),
		})
	}
	slices.SortFunc(out.Nodes, func(a, b job.NodeClock) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// earliest is what the majority's clock says for certain: early is not safe.
func (v *clockVerdict) earliest() time.Time { return v.majority.Add(-v.within) }

// then is the majority's clock at another instant.
func (v *clockVerdict) then(at time.Time) time.Time { return v.majority.Add(at.Sub(v.at)) }

// queueAhead is how far the queue's clock is ahead of the majority's, on the leader.
func (m *Membership) queueAhead(v clockVerdict) time.Duration {
	return m.cfg.ClusterClock().Round(0).Sub(v.then(time.Now()))
}

// ResetClock sets the queue's clock back to the majority's. It is refused with
// CodeConflict unless it is ahead of that by more than Config.MaxClockOffset. It
// returns when the clock is right; the jobs are gone through after that. It blocks for
// some seconds at most.
func (m *Membership) ResetClock(ctx context.Context) error {
	_, err := viaLeader(ctx, m, writeCall,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, m.resetClockHere(ctx) },
		func(ctx context.Context, c memberpb.MembershipClient) (struct{}, error) {
			_, err := c.ResetClock(ctx, &memberpb.ResetClockRequest{})
			return struct{}{}, err
		})
	return err
}

func (m *Membership) resetClockHere(ctx context.Context) error {
	if m.reign.Load() == nil {
		return errNotLeader
	}
	v := m.askClocks(ctx, votersOf(m.configuration()), agreed)
	switch {
	case v.majority.IsZero():
		return job.NotApplied("no majority of the voters has told the time within %v", confirmTimeout)
	case !v.agreed || !v.right(m.self()):
		return job.Errorf(job.CodeConflict, "set the nodes' clocks right first: %s", strings.Join(v.reasons(), "; "))
	}
	v.ahead = m.queueAhead(v)
	if !v.ranAway() {
		return job.Errorf(job.CodeConflict, "the queue's clock is %s the nodes'; it is set back only when it is ahead by more than %v: what is less heals by itself",
			aheadOf(v.ahead), v.most)
	}
	m.cfg.Logger.Warn("setting the queue's clock back", "ahead", v.ahead.Round(time.Millisecond))
	return m.cfg.ProposeClockReset(ctx, v.earliest())
}

func clocksToPB(c job.Clocks) *memberpb.ClocksResponse {
	resp := &memberpb.ClocksResponse{
		MaxOffsetUs: c.MaxOffset.Microseconds(), Agreed: c.Agreed, ClusterAheadUs: c.ClusterAhead.Microseconds(),
	}
	if !c.Majority.IsZero() {
		resp.MajorityUs = c.Majority.UnixMicro()
	}
	for _, n := range c.Nodes {
		resp.Nodes = append(resp.Nodes, &memberpb.NodeClock{
			Id: n.ID, Voter: n.Voter, Known: n.Known, OffsetUs: n.Offset.Microseconds(), WithinUs: n.Within.Microseconds(), Off: n.Off,
		})
	}
	return resp
}

func clocksFromPB(resp *memberpb.ClocksResponse) job.Clocks {
	c := job.Clocks{
		MaxOffset: micros(resp.GetMaxOffsetUs()), Agreed: resp.GetAgreed(), ClusterAhead: micros(resp.GetClusterAheadUs()),
	}
	if us := resp.GetMajorityUs(); us != 0 {
		c.Majority = time.UnixMicro(us)
	}
	for _, n := range resp.GetNodes() {
		c.Nodes = append(c.Nodes, job.NodeClock{
			ID: n.Id, Voter: n.Voter, Known: n.Known, Offset: micros(n.OffsetUs), Within: micros(n.WithinUs), Off: n.Off,
		})
	}
	return c
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
