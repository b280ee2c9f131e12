package integration

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// errOver ends a worker whose work is done.
var errOver = errors.New("all jobs are done")

// account is what producers and consumers of a test know together.
type account struct {
	mu       sync.Mutex
	inserted map[uint64]bool // ids that were answered with INSERTED
	deleted  map[uint64]int  // how often a delete was acknowledged
	unknown  map[uint64]bool // a delete failed: the job may be gone or not
	visits   map[uint64]int
	ghosts   []uint64             // handed out after an acknowledged delete
	held     map[uint64]time.Time // when a reservation's time to run ends at the earliest
	doubles  []uint64             // handed out while another connection held them
}

func newAccount() *account {
	return &account{inserted: map[uint64]bool{}, deleted: map[uint64]int{}, unknown: map[uint64]bool{}, visits: map[uint64]int{}, held: map[uint64]time.Time{}}
}

func (a *account) insert(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inserted[id] = true
}

func (a *account) delete(id uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.unknown[id] = true
	} else {
		a.deleted[id]++
	}
}

// visit counts the reservations of a job, so that each takes another way. The job
// is the caller's until then, or until it calls giveUp.
func (a *account) visit(id uint64, until time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.held[id]) {
		a.doubles = append(a.doubles, id)
	}
	a.held[id] = until
	if a.deleted[id] > 0 {
		a.ghosts = append(a.ghosts, id)
	}
	a.visits[id]++
	return a.visits[id]
}

// giveUp is called before a reservation is ended, by a command or with the
// connection.
func (a *account) giveUp(id uint64, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[id].Equal(until) { // nobody else has it by now
		delete(a.held, id)
	}
}

func (a *account) missing() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.inserted {
		if a.deleted[id] == 0 && !a.unknown[id] {
			n++
		}
	}
	return n
}

// withClient runs work with an unmodified client, on one node after the other as
// their connections fail, until work says that it is over.
func withClient(nodes []*localcluster.Node, first int, over <-chan struct{}, work func(*beanstalk.Conn) error) {
	for i := first; ; i++ {
		c, err := beanstalk.Dial("tcp", nodes[i%len(nodes)].Beanstalk)
		if err == nil {
			for err == nil && !isOver(over) {
				err = work(c)
			}
			c.Close()
		}
		if errors.Is(err, errOver) || isOver(over) {
			return
		}
		select {
		case <-over:
		case <-time.After(20 * time.Millisecond): // a node that is down refuses at once
		}
	}
}

func isOver(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// timeToRun is that of every job.
const timeToRun = 5 * time.Second

// TestAnUnmodifiedBeanstalkdClientSurvivesTheLeader puts, reserves, releases,
// buries, kicks and deletes with somebody else's client, while the leader is
// killed twice. What was acknowledged is done once.
func TestAnUnmodifiedBeanstalkdClientSurvivesTheLeader(t *testing.T) {
	t.Parallel()
	const producers, consumers, each = 3, 4, 150
	c := startCluster(t, 3)
	a := newAccount()
	over := make(chan struct{})
	var producing, consuming sync.WaitGroup
	for p := range producers {
		producing.Go(func() {
			n := 0
			pace := time.NewTicker(10 * time.Millisecond) // so that the load lasts while leaders die
			defer pace.Stop()
			withClient(c.Nodes(), p, over, func(conn *beanstalk.Conn) error {
				if n == each {
					return errOver
				}
				body := fmt.Sprintf("job %d of %d", n, p)
				tube := beanstalk.NewTube(conn, "work")
				id, err := tube.Put([]byte(body), 1024, time.Duration(n%3)*time.Second, timeToRun)
				if err != nil {
					return err // it may be there or not; it is put again
				}
				a.insert(id)
				n++
				<-pace.C
				return nil
			})
		})
	}
	for w := range consumers {
		consuming.Go(func() { withClient(c.Nodes(), w, over, func(conn *beanstalk.Conn) error { return consume(conn, a) }) })
	}
	for range 2 {
		leader := c.leader()
		require.NoError(t, leader.Kill())
		c.leader() // waits for the next
		require.NoError(t, leader.Start())
		c.waitReady(leader)
	}
	producing.Wait()
	c.until(func() error {
		if n := a.missing(); n > 0 {
			return fmt.Errorf("%d jobs are not done yet", n)
		}
		return nil
	})
	c.until(func() error { return emptyTube(c.Nodes()[0], "work") })
	close(over)
	consuming.Wait()
	require.Len(t, a.inserted, producers*each)
	require.Empty(t, a.ghosts, "jobs were handed out after an acknowledged delete")
	require.Empty(t, a.doubles, "jobs were handed out within the time to run of another reservation")
	for id, n := range a.deleted {
		require.Equal(t, 1, n, "job %d was deleted more than once", id)
	}
	c.requireEqualDigests(c.leader(), 3)
}

// emptyTube fails while the tube has jobs: also those whose put or delete failed
// towards the client must come to an end.
func emptyTube(n *localcluster.Node, tube string) error {
	conn, err := beanstalk.Dial("tcp", n.Beanstalk)
	if err != nil {
		return err
	}
	defer conn.Close()
	stats, err := beanstalk.NewTube(conn, tube).Stats()
	if errors.Is(err, beanstalk.ErrNotFound) {
		return nil // nobody names it on this node
	}
	if err != nil {
		return err
	}
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		if n := stats["current-jobs-"+state]; n != "0" {
			return fmt.Errorf("%s jobs are %s", n, state)
		}
	}
	return nil
}

// consume takes one job a step further: released first, then buried and kicked,
// then deleted.
func consume(conn *beanstalk.Conn, a *account) error {
	asked := time.Now()
	id, _, err := beanstalk.NewTubeSet(conn, "work").Reserve(time.Second)
	if err != nil {
		if !errors.Is(err, beanstalk.ErrTimeout) {
			return err
		}
		// A leader may die between a bury and its kick.
		_, err = beanstalk.NewTube(conn, "work").Kick(100)
		return err
	}
	until := asked.Add(timeToRun)
	visits := a.visit(id, until)
	<-time.After(5 * time.Millisecond) // work takes its time
	_, err = conn.StatsJob(id)
	a.giveUp(id, until)
	if err != nil {
		return lost(err)
	}
	switch visits % 3 {
	case 1:
		return lost(conn.Release(id, 100, 0))
	case 2:
		if err := conn.Bury(id, 7); err != nil {
			return lost(err)
		}
		// Another consumer may have kicked all that are buried: then it is not found.
		return lost(conn.KickJob(id))
	}
	err = conn.Delete(id)
	a.delete(id, err)
	return lost(err)
}

// lost hides that somebody else has the job by now: the time to run was over.
func lost(err error) error {
	if errors.Is(err, beanstalk.ErrNotFound) {
		return nil
	}
	return err
}
