package powerloss

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/logstore"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

const nodes = 3

// patience bounds, in virtual time, the wait for what must happen by itself.
const patience = time.Minute

// simulation is one run: clients write, nodes lose power.
type simulation struct {
	rng      *rand.Rand // of the controller
	kinds    [nodes]logstore.Kind
	unsynced bool // the log does not sync
	eager    bool // many snapshots, and hardly any log before them: followers often get the state
	calm     bool // no more losses
	ledger   *ledger
	runs     [nodes]atomic.Pointer[nodeRun]

	mu    sync.Mutex
	wrong error
	acked []ack
	maybe map[string]bool // jobs with a delete of unknown outcome
	seed  uint64          // of what is left of a disk; incremented for each
	tally tally
}

// ack is a write that was acknowledged to a client.
type ack struct {
	id      string
	deleted bool
	index   uint64
}

// tally has the counts of a run.
type tally struct{ losses, whole, exits, acked, unknown, entries int }

func (t *tally) add(o tally) {
	t.losses += o.losses
	t.whole += o.whole
	t.exits += o.exits
	t.acked += o.acked
	t.unknown += o.unknown
	t.entries += o.entries
}

func (s *simulation) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrong == nil {
		s.wrong = err
	}
}

func (s *simulation) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

func idOf(n int) raft.ServerID { return raft.ServerID(fmt.Sprintf("n%d", n)) }

// begin starts a run of node n on a disk. The power loss may happen while it starts; such a
// run counts as started.
func (s *simulation) begin(n int, left remains, lossAfter int) (*nodeRun, error) {
	l := &nodeRun{id: idOf(n), s: s, disk: newDisk(left.mem), kind: s.kinds[n], over: make(chan struct{})}
	if l.kind == logstore.RaftBoltDB {
		var err error
		if l.bolt, err = newBoltDisk(left.bolt, s.unsynced, l.disk.write); err != nil {
			return l, err
		}
	}
	_, l.wire = raft.NewInmemTransportWithTimeout(raft.ServerAddress(l.id), time.Second)
	l.disk.plan(lossAfter, func() { s.powerOff(l) })
	s.runs[n].Store(l)
	err := l.openStores()
	if err == nil && !l.dead.Load() {
		err = s.ledger.checkState(l.id, l.machine)
	}
	if err == nil {
		err = l.startRaft()
	}
	if l.dead.Load() {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("node %s does not start by itself: %w", l.id, err)
	}
	s.connect(l)
	return l, nil
}

// connect connects a running node to the others.
func (s *simulation) connect(l *nodeRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.runs {
		other := s.runs[n].Load()
		if other == nil || other == l || other.dead.Load() || l.dead.Load() {
			continue
		}
		l.wire.Connect(other.wire.LocalAddr(), other.wire)
		other.wire.Connect(l.wire.LocalAddr(), l.wire)
	}
}

// powerOff ends a run, and some of what was not synced is lost.
func (s *simulation) powerOff(l *nodeRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.dead.Load() {
		return
	}
	s.seed++
	rng := rand.New(rand.NewPCG(s.seed, 1))
	percent := []int{0, 0, 100, rng.IntN(101), rng.IntN(101)}[rng.IntN(5)]
	if s.end(l, percent, rng) {
		s.tally.losses++
	}
}

// exit ends a run whose process has ended by itself: its disk keeps everything.
func (s *simulation) exit(l *nodeRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end(l, 100, rand.New(rand.NewPCG(s.seed, 1))) {
		s.tally.exits++
	}
}

// end ends a run, unless it has ended. First the node's transport is cut, then the rest of
// its disk is determined. So everything that it acknowledged was written before.
func (s *simulation) end(l *nodeRun, percent int, rng *rand.Rand) bool {
	if l.dead.Swap(true) {
		return false
	}
	l.wire.DisconnectAll()
	for n := range s.runs {
		if other := s.runs[n].Load(); other != nil && other != l {
			other.wire.Disconnect(l.wire.LocalAddr())
		}
	}
	l.mu.Lock() // nothing is applied between what is left of the disk and the end of the record
	defer l.mu.Unlock()
	var next remains
	if l.bolt != nil { // both disks as they are at one moment: this one waits
		l.bolt.mu.Lock()
		defer l.bolt.mu.Unlock()
		next.bolt = l.bolt.remains(percent, rng)
	}
	next.mem = l.disk.remains(percent, rng)
	l.next = next
	return true
}

// restart ends the rest of node n's run and starts it from what is left of its disk, until
// it runs.
func (s *simulation) restart(n int) error {
	for {
		old := s.runs[n].Load()
		if !old.dead.Load() {
			return nil
		}
		_ = old.stop() // errors of a node without power do not matter
		old.mu.Lock()
		left := old.next
		old.mu.Unlock()
		again := 0
		if !s.calm && s.rng.IntN(4) == 0 {
			again = 1 + s.rng.IntN(60)
		}
		if _, err := s.begin(n, left, again); err != nil {
			return err
		}
	}
}

// losePower causes a power loss of some nodes at a random write of one of them, and restarts
// them.
func (s *simulation) losePower() error {
	order := s.rng.Perm(nodes)
	victims := order[:[]int{1, 1, 2, 2, 3}[s.rng.IntN(5)]]
	first := s.runs[victims[0]].Load()
	gone := make(chan struct{})
	loss := sync.OnceFunc(func() {
		for _, v := range victims {
			s.powerOff(s.runs[v].Load())
		}
		close(gone)
	})
	first.disk.plan(1+s.rng.IntN(120), loss)
	select {
	case <-gone:
	case <-time.After(2 * time.Second): // it does not make that many writes
		loss()
	}
	if len(victims) == nodes {
		s.tally.whole++
	}
	acked := s.acknowledged()
	pass(time.Duration(s.rng.IntN(400)) * time.Millisecond)
	for _, n := range s.rng.Perm(nodes) {
		if err := s.restart(n); err != nil {
			return err
		}
	}
	return s.checkHeld(acked)
}

func (s *simulation) acknowledged() []ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked[:len(s.acked):len(s.acked)]
}

// checkHeld returns an error unless every acknowledged write is on a majority of the disks.
func (s *simulation) checkHeld(acked []ack) error {
	for _, a := range acked {
		held := 0
		for n := range s.runs {
			l := s.runs[n].Load()
			if l.dead.Load() {
				held++ // it lost power again and is checked after its start
				continue
			}
			has, err := l.holds(a.index, s.ledger.term(a.index))
			if err != nil {
				return err
			}
			if has {
				held++
			}
		}
		if held <= nodes/2 {
			return fmt.Errorf("job %s was acknowledged with entry %d, which is on %d of %d disks", a.id, a.index, held, nodes)
		}
	}
	return nil
}

// client adds jobs, several at a time, and deletes some of them, until ctx ends.
func (s *simulation) client(ctx context.Context, name string, rng *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		pass(time.Duration(1+rng.IntN(60)) * time.Millisecond)
		l := s.runs[rng.IntN(nodes)].Load()
		if l.dead.Load() || !l.ready.Load() || l.raft.State() != raft.Leader {
			continue
		}
		var sent sync.WaitGroup
		for i := range 1 + rng.IntN(4) {
			id := fmt.Sprintf("%s-%d-%d", name, n, i)
			size, deletes := rng.IntN(200), rng.IntN(4) == 0
			if rng.IntN(6) == 0 {
				size = rng.IntN(12_000) // over several blocks of the disk
			}
			sent.Go(func() {
				add := &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: id, Topic: "t", TtrMs: 1000, Body: make([]byte, size)}}}
				if s.propose(l, id, add, false) && deletes {
					s.propose(l, id, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Id: id}}}}, true)
				}
			})
		}
		sent.Wait()
	}
}

// propose makes one entry and reports whether it was acknowledged.
func (s *simulation) propose(l *nodeRun, id string, op *jobpb.Op, deletes bool) bool {
	data, err := oplog.AppendOp(oplog.AppendEntryHeader(nil, time.Now().UnixMilli()), op)
	if err != nil {
		s.fail(err)
		return false
	}
	if !l.beginWrite() {
		return false
	}
	f := l.raft.Apply(data, time.Second)
	err = f.Error()
	l.writes.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || l.dead.Load() {
		s.tally.unknown++
		s.maybe[id] = s.maybe[id] || deletes
		return false
	}
	s.tally.acked++
	s.acked = append(s.acked, ack{id: id, deleted: deletes, index: f.Index()})
	return true
}
