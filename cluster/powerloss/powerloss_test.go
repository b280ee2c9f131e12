package powerloss

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/cluster/logstore"
)

var (
	seedFlag  = flag.Uint64("powerloss.seed", 1, "first seed")
	roundFlag = flag.Uint64("powerloss.rounds", 40, "seeds to run; a fifth with -short")
	boltFlag  = flag.Uint64("powerloss.bolt", 20, "seeds to run with raft-boltdb; a fifth with -short")
)

// workers is the number of seeds that run concurrently.
const workers uint64 = 2

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }

// run runs one simulation. The error is the first violation.
func run(seed uint64, kinds [nodes]logstore.Kind, unsynced bool) (tally, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &simulation{rng: rng, kinds: kinds, unsynced: unsynced, eager: seed%3 == 0, seed: seed << 16, maybe: map[string]bool{}}
	var err error
	if s.ledger, err = newLedger(); err != nil {
		return tally{}, err
	}
	var c raft.Configuration
	for n := range nodes {
		c.Servers = append(c.Servers, raft.Server{ID: idOf(n), Address: raft.ServerAddress(idOf(n))})
		if _, err := s.begin(n, remains{mem: vfs.NewCrashableMem()}, 0); err != nil {
			return tally{}, err
		}
	}
	if err := s.runs[0].Load().raft.BootstrapCluster(c).Error(); err != nil {
		return tally{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for i := range 2 {
		own := rand.New(rand.NewPCG(seed, uint64(i)+2))
		clients.Go(func() { s.client(ctx, fmt.Sprint("job-", i), own) })
	}
	pass(time.Second)
	for range 3 + rng.IntN(4) {
		if err = s.losePower(); err != nil || s.failure() != nil || s.ledger.failure() != nil {
			break
		}
		pass(time.Duration(rng.IntN(1500)) * time.Millisecond)
	}
	cancel()
	if err == nil && s.failure() == nil && s.ledger.failure() == nil {
		err = s.endRun(&clients)
	}
	for n := range nodes {
		_ = s.runs[n].Load().stop() // a run that lost power may end with an error
	}
	clients.Wait()
	s.tally.entries = len(s.ledger.entries)
	return s.tally, errors.Join(err, s.failure(), s.ledger.failure(), s.ledger.state.Close())
}

// endRun powers all nodes on for good and checks the state that they reach.
func (s *simulation) endRun(clients *sync.WaitGroup) error {
	s.calm = true
	for n := range nodes {
		s.runs[n].Load().disk.plan(0, nil)
		if err := s.restart(n); err != nil {
			return err
		}
	}
	clients.Wait()
	end := time.Now().Add(patience)
	for !s.agree() {
		for n := range nodes { // a node that has ended by itself
			if err := s.restart(n); err != nil {
				return err
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("the nodes do not agree on one state after all have power: %s", s.positions())
		}
		pass(100 * time.Millisecond)
	}
	for n := range nodes {
		l := s.runs[n].Load()
		if err := errors.Join(s.ledger.checkState(l.id, l.machine), s.checkJobs(l)); err != nil {
			return err
		}
	}
	return s.checkHeld(s.acked)
}

// checkJobs compares a node's jobs with the replies to clients.
func (s *simulation) checkJobs(l *nodeRun) error {
	deleted := map[string]bool{}
	for _, a := range s.acked {
		deleted[a.id] = deleted[a.id] || a.deleted
	}
	v := l.machine.View()
	defer v.Close()
	for id, gone := range deleted {
		_, found, err := v.Job(id)
		switch {
		case err != nil:
			return err
		case found && gone:
			return fmt.Errorf("node %s has job %s, whose delete was acknowledged", l.id, id)
		case !found && !gone && !s.maybe[id]:
			return fmt.Errorf("node %s lacks job %s, whose add was acknowledged", l.id, id)
		}
	}
	return nil
}

// positions describes the position of each node, for a failure.
func (s *simulation) positions() string {
	var b strings.Builder
	for n := range nodes {
		l := s.runs[n].Load()
		st := l.raft.Stats()
		fmt.Fprintf(&b, "%s: %s, term %s, log to %s, commit %s, applied %d; ", l.id, st["state"], st["term"], st["last_log_index"], st["commit_index"], l.machine.Applied().Index)
	}
	return b.String()
}

// agree reports whether there is a leader and all nodes have applied all its entries.
func (s *simulation) agree() bool {
	for n := range nodes {
		l := s.runs[n].Load()
		if l.raft.State() != raft.Leader || l.raft.Barrier(time.Second).Error() != nil {
			continue
		}
		last := l.raft.LastIndex()
		pass(500 * time.Millisecond) // followers learn of the commit
		want, err := digest(l.machine)
		if err != nil {
			return false
		}
		for m := range nodes {
			other := s.runs[m].Load()
			if got, err := digest(other.machine); other.raft.AppliedIndex() < last || err != nil || got != want {
				return false
			}
		}
		return true
	}
	return false
}

func TestNothingAcknowledgedIsLostWithThePower(t *testing.T) {
	seeds(t, *roundFlag, func(uint64) [nodes]logstore.Kind { return allOf(logstore.RaftWAL) })
}

// Every other cluster has one node with raft-wal.
func TestNothingAcknowledgedIsLostWithThePowerOnRaftBoltdb(t *testing.T) {
	seeds(t, *boltFlag, boltKinds)
}

func allOf(kind logstore.Kind) [nodes]logstore.Kind { return [nodes]logstore.Kind{kind, kind, kind} }

func boltKinds(seed uint64) [nodes]logstore.Kind {
	kinds := allOf(logstore.RaftBoltDB)
	if seed%2 == 0 {
		kinds[0] = logstore.RaftWAL
	}
	return kinds
}

func seeds(t *testing.T, rounds uint64, kinds func(seed uint64) [nodes]logstore.Kind) {
	if testing.Short() {
		rounds /= 5
	}
	var mu sync.Mutex
	var sum tally
	t.Run("seeds", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint("worker", w), func(t *testing.T) {
				t.Parallel()
				for i := w; i < rounds; i += workers {
					got := oneSeed(t, *seedFlag+i, kinds(*seedFlag+i))
					mu.Lock()
					sum.add(got)
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d seeds: power lost %d times (%d times by all nodes at once), %d exits of a node by itself, %d writes acknowledged, %d unknown, %d entries",
		rounds, sum.losses, sum.whole, sum.exits, sum.acked, sum.unknown, sum.entries)
	if rounds >= 20 {
		require.NotZero(t, sum.whole)
	}
	if rounds > 0 {
		require.Greater(t, sum.acked, sum.unknown)
	}
}

// oneSeed is a separate test, so that the others continue after a failure, and a hang or a
// crash names the seed.
func oneSeed(t *testing.T, seed uint64, kinds [nodes]logstore.Kind) (got tally) {
	t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var err error
			got, err = run(seed, kinds, false)
			require.NoError(t, err, "repeat: go test ./cluster/powerloss -run '%s$' -powerloss.seed %d -powerloss.rounds 1 -powerloss.bolt 1",
				strings.SplitN(t.Name(), "/", 2)[0], seed)
		})
	})
	return got
}

// A log that does not sync must be detected, or the tests above show nothing.
func TestUnsyncedLogIsDetected(t *testing.T) {
	for _, kind := range []logstore.Kind{logstore.RaftWAL, logstore.RaftBoltDB} {
		caught := 0
		for seed := range uint64(10) {
			synctest.Test(t, func(*testing.T) {
				if _, err := run(seed, allOf(kind), true); err != nil {
					caught++
				}
			})
		}
		require.GreaterOrEqual(t, caught, 5, "of ten runs with %s", kind)
	}
}
